// The CUDA engine's memory: fills, slabs, limits.

#include <cstring>

#include "cuda_engine_rig.hpp"

namespace troupe::host {
namespace {

TEST_F(CudaEngine, DescribesItsDevice) {
  const auto& description = engine_->description();
  EXPECT_EQ(description.engine, "cuda");
  EXPECT_EQ(description.uuid.size(), 40u);
  EXPECT_EQ(description.uuid.substr(0, 4), "GPU-");
  EXPECT_GT(description.memory_bytes, kSlabBytes);
  EXPECT_FALSE(description.bus_id.empty());
  EXPECT_EQ(description.libraries.size(), 3u) << "the driver, the runtime, NCCL";
  EXPECT_EQ(list_devices().take().at(0).uuid, description.uuid);
}

TEST_F(CudaEngine, FillsEveryElementSizeAndAlignment) {
  for (const auto dtype : {DType::u8, DType::f16, DType::f32, DType::f64, DType::c128}) {
    const auto size = size_of(dtype);
    for (const std::uint64_t skew : {0, 8, 16, 24}) {
      for (const std::uint64_t count : {1u, 2u, 3u, 17u, 1000u, 100003u}) {
        used_ = 0;
        const auto all = space(count * size + 512);
        run(memory::Fill{DType::u8, all.bytes, {0xEE}, all});
        memory::Fill fill{dtype, count, {}, all};
        for (std::size_t i = 0; i < size; ++i) fill.pattern[i] = static_cast<std::uint8_t>(i + 1);
        fill.destination.offset += 256 + skew;
        fill.destination.bytes = count * size;
        run(fill);
        const auto bytes = get<std::uint8_t>(all);
        for (std::uint64_t i = 0; i < bytes.size(); ++i) {
          const auto first = 256 + skew;
          const bool inside = i >= first && i < first + count * size;
          ASSERT_EQ(bytes[i], inside ? (i - first) % size + 1 : 0xEE)
              << to_string(dtype) << " skew " << skew << " count " << count << " byte " << i;
        }
      }
    }
  }
}

TEST_F(CudaEngine, SlabsLiveAsLongAsTheirDescriptor) {
  constexpr std::uint64_t kBytes = std::uint64_t{4} << 20;
  auto slab = engine_->memory().make_slab(kBytes).take();
  auto* second = engine_->memory().map_slab(slab.fd.get(), kBytes).take();
  ASSERT_NE(second, slab.base);
  AddressMap map = addresses_;
  map.set(2, slab.base, kBytes);
  map.set(3, second, kBytes);
  const Operand in_first{2, 0, 0, 0, 0, kBytes}, in_second{3, 0, 0, 0, 0, kBytes};
  memory::Fill fill{DType::u32, kBytes / 4, {0x78, 0x56, 0x34, 0x12}, in_first};
  engine_->run(fill, Call(Lane::memory, map, {})).take();
  engine_->synchronize(Lane::memory).take();
  engine_->memory().unmap_slab(slab.base, kBytes);
  engine_
      ->run(memory::Copy{DType::u8, in_second, {kPinned, 0, 0, 0, 0, kBytes}},
            Call(Lane::device_to_host, map, {}))
      .take();
  engine_->synchronize(Lane::device_to_host).take();
  std::vector<std::uint32_t> words(kBytes / 4);
  std::memcpy(words.data(), pinned_, kBytes);
  EXPECT_EQ(words, std::vector<std::uint32_t>(kBytes / 4, 0x12345678));
  engine_->memory().unmap_slab(second, kBytes);
  auto* third = engine_->memory().map_slab(slab.fd.get(), kBytes).take();
  engine_->memory().unmap_slab(third, kBytes);
}

TEST_F(CudaEngine, MemoryHasLimits) {
  EngineOptions tight;
  tight.memory_limit = std::uint64_t{8} << 20;
  const auto limited = make_engine(tight).take();
  auto slab = limited->memory().make_slab(std::uint64_t{6} << 20).take();
  EXPECT_EQ(limited->memory().make_slab(std::uint64_t{4} << 20).code(), Errc::out_of_memory);
  limited->memory().unmap_slab(slab.base, std::uint64_t{6} << 20);
  const auto huge = engine_->memory().make_slab(std::uint64_t{1} << 42);
  ASSERT_EQ(huge.code(), Errc::out_of_memory);
  EXPECT_NE(huge.error().message.find("asked for"), std::string::npos) << huge.error().message;
  EXPECT_EQ(engine_->memory().make_slab(1).code(), Errc::invalid);
}

}  // namespace
}  // namespace troupe::host
