#include "kube/api_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/status.h"

namespace kube {
namespace {

using test::StatusIs;
using testing::AllOf;
using testing::EndsWith;

ApiError Error(int status, const std::string& json) {
  return ReadApiError({.status = status, .body = json});
}

// As kube-apiserver 1.37 writes them.
constexpr const char* kForbidden =
    R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":)"
    R"("nodeplacements.plumbline.dev \"gpu-7\" is forbidden: User \"system:serviceaccount:p:agent\" )"
    R"(cannot patch resource \"nodeplacements/status\" in API group \"plumbline.dev\" at the cluster )"
    R"(scope","reason":"Forbidden","details":{"name":"gpu-7","group":"plumbline.dev",)"
    R"("kind":"nodeplacements"},"code":403})";
constexpr const char* kConflict =
    R"({"kind":"Status","status":"Failure","message":"Apply failed with 1 conflict: conflict with )"
    R"(\"nfd\": .zones","reason":"Conflict","details":{"causes":[{"reason":"FieldManagerConflict",)"
    R"("message":"conflict with \"nfd\"","field":".zones"}]},"code":409})";
constexpr const char* kInvalid =
    R"({"kind":"Status","status":"Failure","message":"NodePlacement \"a\" is invalid: x","reason":)"
    R"("Invalid","details":{"name":"a","causes":[{"reason":"FieldValueRequired","message":)"
    R"("Required value","field":"status.bootID"},{"message":"too long","field":"status.x"}]},"code":422})";

TEST(ToStatus, NamesTheMissingPermission) {
  EXPECT_THAT(
      ToStatus(Error(403, kForbidden), "apply nodeplacements.plumbline.dev/status gpu-7"),
      StatusIs(
          absl::StatusCode::kPermissionDenied,
          AllOf(testing::StartsWith("apply nodeplacements.plumbline.dev/status gpu-7: HTTP 403: "),
                EndsWith("; missing permission: patch nodeplacements/status.plumbline.dev"))));
}

TEST(ToStatus, LeavesTheWordToAnAdmissionPolicy) {
  EXPECT_THAT(
      ToStatus(
          Error(403, R"({"kind":"Status","message":"x is forbidden: ValidatingAdmissionPolicy )"
                     R"('p' denied request: not your node","code":403})"),
          "t"),
      StatusIs(absl::StatusCode::kPermissionDenied, EndsWith("denied request: not your node")));
}

TEST(ToStatus, NamesTheFieldsAndTheirOtherManager) {
  EXPECT_THAT(ToStatus(Error(409, kConflict), "t"),
              StatusIs(absl::StatusCode::kAborted, EndsWith("; .zones: conflict with \"nfd\"")));
}

TEST(ToStatus, NamesTheFieldsThatAreInvalid) {
  EXPECT_THAT(ToStatus(Error(422, kInvalid), "t"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       EndsWith("; status.bootID: Required value, status.x: too long")));
}

TEST(ToStatus, TakesAFieldThatTheSchemaDoesNotHaveForInvalid) {  // the API server says 500
  const ApiError error =
      Error(500, R"({"kind":"Status","message":"failed to create typed patch object: )"
                 R"(.status.x: field not declared in schema","code":500})");
  EXPECT_EQ(ToStatus(error, "t").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(IsPassing(error));
}

TEST(ToStatus, TellsAnObjectThatIsMissingFromAKindThatIsNotServed) {
  EXPECT_EQ(
      ToStatus(Error(404, R"({"kind":"Status","message":"m","details":{"name":"a"},"code":404})"),
               "t")
          .code(),
      absl::StatusCode::kNotFound);
  EXPECT_THAT(ToStatus(Error(404, "404 page not found\n"), "t"),
              StatusIs(absl::StatusCode::kUnimplemented, "t: HTTP 404: 404 page not found"));
}

TEST(ToStatus, HasACodeForWhatIsToBeDone) {
  using enum absl::StatusCode;
  const auto code = [](int status, const std::string& reason = "") {
    return ToStatus({.code = status, .reason = reason}, "t").code();
  };
  EXPECT_EQ(code(400), kInvalidArgument);
  EXPECT_EQ(code(401), kUnauthenticated);
  EXPECT_EQ(code(409, "AlreadyExists"), kAlreadyExists);
  EXPECT_EQ(code(409, "Conflict"), kAborted);
  EXPECT_EQ(code(410), kOutOfRange);
  EXPECT_EQ(code(415), kUnimplemented);
  EXPECT_EQ(code(429), kUnavailable);
  EXPECT_EQ(code(500), kInternal);
  EXPECT_EQ(code(503), kUnavailable);
  EXPECT_EQ(code(302), kUnknown);
}

TEST(ToStatus, CutsAWebhooksNovel) {
  const ApiError novel{.code = 422, .message = "denied: " + std::string(1 << 20, 'x')};
  const absl::Status status = ToStatus(novel, "apply");
  EXPECT_THAT(std::string(status.message()), testing::StartsWith("apply: HTTP 422: denied: x"));
  EXPECT_LT(status.message().size(), 5000U);
}

TEST(ReadApiError, ShowsTheBeginningOfAPageThatIsNoStatus) {
  const ApiError error = Error(502, "<html>" + std::string(1000, 'x'));
  EXPECT_EQ(error.message.size(), 200U);
  EXPECT_EQ(error.code, 502);
}

TEST(ReadApiError, TakesRetryAfterFromTheHeaderOrTheStatus) {
  const std::string status = R"({"kind":"Status","details":{"retryAfterSeconds":7},"code":429})";
  EXPECT_EQ(ReadApiError({.status = 429, .body = status}).retry_after, std::chrono::seconds(7));
  EXPECT_EQ(ReadApiError({.status = 429, .retry_after = "3", .body = status}).retry_after,
            std::chrono::seconds(3));
  for (const char* odd : {"-1", "soon", "", "99999999999999999999"}) {
    EXPECT_EQ(ReadApiError({.status = 429, .retry_after = odd}).retry_after, std::nullopt) << odd;
  }
}

TEST(ReadApiError, TakesNoLongerRetryAfterThanADay) {
  const auto seconds_of = [](const std::string& number) {
    return ReadApiError(
               {.status = 503,
                .retry_after = "",
                .body = R"({"kind":"Status","details":{"retryAfterSeconds":)" + number + "}}"})
        .retry_after.value();
  };
  EXPECT_EQ(seconds_of("86400"), std::chrono::hours(24));
  EXPECT_EQ(seconds_of("9223372036854775807"), std::chrono::hours(24));
}

TEST(IsPassing, IsAConflictOfTwoWritesButNotOfTwoManagers) {
  EXPECT_TRUE(IsPassing({.code = 409, .reason = "Conflict"}));
  EXPECT_FALSE(IsPassing(Error(409, kConflict)));
  EXPECT_FALSE(IsPassing({.code = 409, .reason = "AlreadyExists"}));
}

TEST(IsRefusal, IsWhatSomebodyHasToChangeFirst) {
  const auto is_refusal = [](const ApiError& error) {
    return IsRefusal(ToStatus(error, "watch pods").code());
  };
  EXPECT_TRUE(is_refusal({.code = 403, .reason = "Forbidden"}));
  EXPECT_TRUE(is_refusal({.code = 404}));                    // a kind that is not served
  EXPECT_FALSE(is_refusal({.code = 404, .name = "gpu-7"}));  // an object that is not there
  EXPECT_FALSE(is_refusal({.code = 401}));                   // tokens rotate
  EXPECT_FALSE(is_refusal({.code = 410}));
  EXPECT_FALSE(is_refusal({.code = 503}));
}

}  // namespace
}  // namespace kube
