#include "kube/metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/status.h"

namespace kube {
namespace {

using test::StatusIs;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// As an API server keeps it of a NodeResourceTopology that two wrote.
constexpr char kTwoWriters[] = R"({"metadata":{
  "name":"gpu-7","uid":"u","resourceVersion":"12",
  "ownerReferences":[{"apiVersion":"v1","kind":"Namespace","name":"nfd","uid":"n-1"}],
  "managedFields":[
    {"manager":"plumbline-agent","operation":"Apply","time":"2026-11-29T15:00:43Z",
     "apiVersion":"topology.node.k8s.io/v1alpha2","fieldsType":"FieldsV1",
     "fieldsV1":{"f:zones":{"k:{\"name\":\"node-0\"}":{".":{},"f:name":{}}}}},
    {"manager":"nfd","operation":"Apply","subresource":"status",
     "fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:a/b":{}},"f:labels":{"f:c":{}},
                 "f:ownerReferences":{"k:{\"uid\":\"n-1\"}":{}}},"f:attributes":{}}}]}})";

TEST(ReadMetadata, SaysWhoOwnsAndWhoWroteWhat) {
  ASSERT_OK_AND_ASSIGN(const Object object, ParseObject(kTwoWriters));
  ASSERT_OK_AND_ASSIGN(const Metadata metadata, ReadMetadata(object));
  EXPECT_EQ(metadata.uid, "u");
  EXPECT_EQ(metadata.resource_version, "12");
  ASSERT_THAT(metadata.owners, SizeIs(1));
  EXPECT_EQ(metadata.owners[0].kind, "Namespace");
  EXPECT_EQ(metadata.owners[0].uid, "n-1");

  ASSERT_THAT(metadata.managed, SizeIs(2));
  const ManagedFields& ours = metadata.managed[0];
  EXPECT_EQ(ours.manager, "plumbline-agent");
  EXPECT_THAT(ours.top, ElementsAre("zones"));
  EXPECT_THAT(ours.annotations, IsEmpty());
  EXPECT_EQ(ours.fields, R"({"f:zones":{"k:{\"name\":\"node-0\"}":{".":{},"f:name":{}}}})");
  EXPECT_THAT(ours.json, HasSubstr("2026-11-29T15:00:43Z"));

  const ManagedFields& theirs = metadata.managed[1];
  EXPECT_EQ(theirs.subresource, "status");
  EXPECT_THAT(theirs.top, ElementsAre("attributes", "metadata"));
  EXPECT_THAT(theirs.annotations, ElementsAre("a/b"));
  EXPECT_THAT(theirs.labels, ElementsAre("c"));
  EXPECT_THAT(theirs.owner_uids, ElementsAre("n-1"));
}

TEST(ReadMetadata, NamesTheFieldThatIsWrong) {
  ASSERT_OK_AND_ASSIGN(
      const Object object,
      ParseObject(R"({"metadata":{"name":"x","managedFields":[{"fieldsV1":"all"}]}})"));
  EXPECT_THAT(ReadMetadata(object), StatusIs(absl::StatusCode::kInvalidArgument,
                                             HasSubstr("metadata.managedFields[0].fieldsV1")));
}

}  // namespace
}  // namespace kube
