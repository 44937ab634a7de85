#include <troupe/lib/function.hpp>

#include "bad_arguments.hpp"

namespace troupe::test {
namespace {

const FunctionLibrary& functions() {
  static const auto library =
      device().load_functions(on_cuda() ? TROUPE_TEST_FUNCTIONS_CUDA : TROUPE_TEST_FUNCTIONS_CPU);
  return library;
}

template <class... Arguments>
Future<void> call(std::string_view name, const Arguments&... arguments) {
  return device().call(functions().function(std::string(name)), arguments...);
}

class FunctionOps : public ::testing::Test {};

TEST_F(FunctionOps, RunInTheOrderOfTheProgram) {
  const auto x = put(std::vector<float>{1, 2, 3}), y = put(std::vector<float>(3));
  call("scale", read(x), write(y), 3, 2.0f);
  device().blas().axpy(1.0f, x, y);
  call("scale", read(y), write(x), 3, 10.0f);
  EXPECT_EQ(device().download(x), (std::vector<float>{30, 60, 90}));

  const auto counter = put(std::vector<double>(200));
  for (int i = 0; i < 50; ++i) call("increment", update(counter), 200LL);
  EXPECT_EQ(device().download(counter), std::vector<double>(200, 50.0));
}

TEST_F(FunctionOps, WhatTheyReturnFailsTheCommandAlone) {
  const auto x = put(std::vector<double>{1}), y = put(std::vector<double>{1});
  for (int i = 0; i < 6; ++i) {  // no library is given up for that
    auto spoilt = put(std::vector<double>{1});
    const auto failed = call("fail", update(spoilt), 7);
    EXPECT_EQ(failed.wait().code(), Errc::library);
    EXPECT_EQ(failed.wait().error().native, 7);
    EXPECT_FALSE(spoilt.valid());
  }
  EXPECT_EQ(device().take_error().code(), Errc::library);
  EXPECT_TRUE(call("increment", update(y), 1LL).wait().ok());
  EXPECT_EQ(device().download(y)[0], 2.0);
  EXPECT_TRUE(x.valid());
}

TEST_F(BadArguments, OfFunctions) {
  EXPECT_EQ(call("increment", update(ref)).wait().code(), Errc::invalid);
  EXPECT_EQ(call("increment", update(ref), 1).wait().code(), Errc::invalid)
      << "an int, not a long long";
  EXPECT_EQ(call("absent", update(ref)).wait().code(), Errc::unsupported);
  EXPECT_EQ(call("", update(ref)).wait().code(), Errc::invalid);
  const auto nowhere = device().load_functions("/no/such/library.so").function("increment");
  EXPECT_EQ(device().call(nowhere, update(ref), 1LL).wait().code(), Errc::unsupported);
  EXPECT_EQ(device()
                .call(device().load_functions("/etc/passwd").function("f"), update(ref))
                .wait()
                .code(),
            Errc::invalid)
      << "no shared object";
  EXPECT_EQ(device().call(Function(), update(ref), 1LL).wait().code(), Errc::invalid);
  EXPECT_TRUE(ref.valid()) << "nothing was done";
  (void)device().take_error();
}

}  // namespace
}  // namespace troupe::test
