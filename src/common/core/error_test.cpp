// Errors as values: their names and texts, and that a Result cannot be misread.
#include <troupe/error.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

namespace troupe {
namespace {

TEST(Errc, EveryClassHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (unsigned code = 0; code <= static_cast<unsigned>(Errc::internal); ++code) {
    const auto name = to_string(static_cast<Errc>(code));
    EXPECT_NE(name, "unknown") << code;
    EXPECT_TRUE(names.insert(name).second) << name << " twice";
  }
  EXPECT_EQ(to_string(static_cast<Errc>(200)), "unknown");
}

TEST(Error, TextHasClassMessageAndNativeCode) {
  EXPECT_EQ((Error{Errc::device_lost, 700, "cuEventQuery: illegal address"}).to_string(),
            "device_lost: cuEventQuery: illegal address (700)");
  EXPECT_EQ((Error{Errc::timeout, 0, ""}).to_string(), "timeout");
  EXPECT_EQ((Error{Errc::io, 2, ""}).to_string(), "io (2)");
}

TEST(Exception, CarriesTheError) {
  const Exception exception(Error{Errc::io, 2, "no such file"});
  EXPECT_EQ(exception.code(), Errc::io);
  EXPECT_EQ(exception.error().native, 2);
  EXPECT_STREQ(exception.what(), "io: no such file (2)");
}

TEST(Result, HoldsAValue) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(7));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.code(), Errc::ok);
  EXPECT_EQ(**result, 7);
  EXPECT_EQ(*std::move(result).take(), 7);
}

TEST(Result, HoldsAnError) {
  Result<std::string> result(Error{Errc::stale, 3, "gone"});
  EXPECT_FALSE(result);
  EXPECT_EQ(result.code(), Errc::stale);
  try {
    (void)std::move(result).take();
    FAIL() << "take() of an error returned";
  } catch (const Exception& e) {
    EXPECT_EQ(e.code(), Errc::stale);
    EXPECT_EQ(e.error().message, "gone");
  }
}

TEST(Result, OfVoid) {
  EXPECT_TRUE(Result<void>().ok());
  EXPECT_NO_THROW(Result<void>().take());
  const Result<void> failed(Error{Errc::invalid, 0, "n is negative"});
  EXPECT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message, "n is negative");
  EXPECT_THROW(Result<void>(failed).take(), Exception);
}

TEST(ResultDeathTest, AccessToWhatIsNotThereAborts) {
  const Result<int> failed(Error{Errc::io, 5, "read"});
  const Result<int> good(1);
  EXPECT_DEATH((void)failed.value(), "io: read");
  EXPECT_DEATH((void)good.error(), "on a value");
  EXPECT_DEATH((void)Result<void>().error(), "on a value");
}

TEST(CheckDeathTest, SaysWhatAndWhere) {
  check(true, "holds");
  EXPECT_DEATH(check(false, "the moon is round"),
               "error_test.cpp:[0-9]+: check failed: the moon is round");
}

}  // namespace
}  // namespace troupe
