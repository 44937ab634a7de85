#pragma once

#include "lib/tensor/blocks/view.hpp"
#include "lib/tensor/common/rows_cpu.hpp"

namespace troupe::tensor {

/// D = alpha A B + beta D, block by block. W is the type of all tensors.
template <class W>
void contract_blocks(const ContractBlockSparse& op, const BlockData& blocks, const W* a, const W* b,
                     W* d);

}  // namespace troupe::tensor
