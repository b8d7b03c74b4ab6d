#include "podresources/container_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/status.h"
#include "test/support/temp_tree.h"

namespace podresources {
namespace {

using ::test::StatusIs;
using testing::HasSubstr;

TEST(ContainerNames, AreInTheNamesOfTheKubeletsLinks) {
  const std::string a(64, 'a');
  const std::string b(64, 'b');
  test::TempTree tree;
  const std::string folder = "var/log/containers/";
  tree.Link(folder + "llm-0_ml_server-" + a + ".log", "/var/log/pods/x/server/0.log");
  tree.Link(folder + "web-1_default_side-car-2-" + b + ".log", "/gone");
  tree.Put(folder + "no-id.log", "").Put(folder + a + ".log", "").Put(folder + "x", "");
  tree.Put(folder + "a_b_-" + std::string(64, 'c') + ".log", "");
  tree.Put(folder + "a_b_c-" + std::string(64, 'z') + ".log", "");
  ASSERT_OK_AND_ASSIGN(const auto names, ReadContainerNames(tree.Open()));
  EXPECT_THAT(names,
              testing::ElementsAre(testing::Pair(a, "server"), testing::Pair(b, "side-car-2")));
}

TEST(ContainerNames, OfAFolderThatIsNotThereAreAnError) {
  test::TempTree tree;
  EXPECT_THAT(ReadContainerNames(tree.Open()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("var/log/containers")));
}

}  // namespace
}  // namespace podresources
