// What a device host tells of the libraries that it has opened: there and back as bytes.
#include "common/wire/opened_library.hpp"

#include <gtest/gtest.h>

namespace troupe::wire {
namespace {

const OpenedLibrary kDnn{"dnn",
                         {{"oneDNN", "2.6.0", "/opt/some where/libdnnl.so.2"},
                          {"OpenBLAS", "OpenBLAS 0.3.21 NO_LAPACKE Haswell", ""}}};

TEST(OpenedLibrary, ComesBack) {
  for (const auto& library : {kDnn, OpenedLibrary{"vector", {}}}) {
    const auto got = decode_opened_library(encode(library));
    ASSERT_TRUE(got.ok());
    EXPECT_EQ(*got, library);
  }
}

TEST(OpenedLibrary, ATextThatHoldsAnEndIsCutThere) {
  const auto got =
      decode_opened_library(encode({"blas", {{std::string("Open\0BLAS", 9), "1", "file"}}}));
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(*got, (OpenedLibrary{"blas", {{"Open", "1", "file"}}}));
}

TEST(OpenedLibrary, WhatIsCutOffIsRefused) {
  const auto bytes = encode(kDnn);
  const auto one = encode({"dnn", {kDnn.stands_on[0]}}), none = encode({"dnn", {}});
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const bool whole = length == one.size() || length == none.size();
    EXPECT_EQ(decode_opened_library(std::string_view(bytes).substr(0, length)).ok(), whole)
        << length;
  }
  EXPECT_FALSE(decode_opened_library(std::string_view("\0", 1)).ok()) << "a library without a name";
}

}  // namespace
}  // namespace troupe::wire
