// A command that is asked of another rank, and what that answers if it does not know the operation.
#include "rank/token/token_execute.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "common/wire/record.hpp"
#include "sound_operations.hpp"

#include <troupe/lib/operation_table.hpp>

namespace troupe::rank_process {
namespace {

/// Of a library that no program includes.
struct Unknown {
  static constexpr std::string_view kName = "nobodys.operation";
  static constexpr DTypes kDTypes = DTypes::reals();

  OpDType dtype;
  Operand x;

  static constexpr std::array kOperands{read("x", &Unknown::x)};
  Result<void> check() const { return {}; }
};

template <Operation Op>
routed::Execute request_of(const Op& op) {
  return execute_request({info_of<Op>, std::as_bytes(std::span(&op, 1))}).take();
}

TEST(TokenExecute, CarriesTheRecord) {
  const auto op = wire::test::sample_of<blas::Axpy>();
  const auto sent = request_of(op);
  const auto got = decode_token_message(encode(2, sent));
  ASSERT_TRUE(got.ok());
  const auto record = record_of(std::get<routed::Execute>(got->message), 1);
  ASSERT_TRUE(record.ok());
  wire::Command command;
  ASSERT_TRUE(command.decode(*record).ok());
  EXPECT_EQ(command.name(), "blas.axpy");
  EXPECT_EQ(std::memcmp(command.op(), &op, sizeof op), 0);
}

TEST(TokenExecute, AnOperationThatTheProgramDoesNotKnowIsUnsupportedAndNamed) {
  const auto record = record_of(request_of(Unknown{DType::f64, {}}), 3);
  ASSERT_EQ(record.code(), Errc::unsupported);
  EXPECT_EQ(record.error().message,
            "nobodys.operation cannot be asked of rank 3: its program does not include library "
            "nobodys");
}

TEST(TokenExecute, WhatIsTooShortIsRefused) {
  auto request = request_of(wire::test::sample_of<blas::Axpy>());
  request.record.resize(sizeof(wire::CommandHeader) - 1);
  EXPECT_EQ(record_of(request, 1).code(), Errc::invalid);
  request.record.clear();
  EXPECT_EQ(record_of(request, 1).code(), Errc::invalid);
}

TEST(TokenExecute, ACommandThatIsTooLongDoesNotTravel) {
  const std::vector<std::byte> data(kLongestRequest);
  const auto op = wire::test::sample_of<blas::Axpy>();
  const detail::CommandView command(info_of<blas::Axpy>, std::as_bytes(std::span(&op, 1)),
                                    Parts(std::span<const TailOperand>(), data));
  EXPECT_EQ(execute_request(command).code(), Errc::invalid);
}

}  // namespace
}  // namespace troupe::rank_process
