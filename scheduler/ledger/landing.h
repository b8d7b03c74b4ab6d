#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/admission/request.h"
#include "scheduler/admission/state.h"
#include "scheduler/admission/verdict.h"
#include "scheduler/admission/wants.h"

namespace scheduler::ledger {

// Whether a yes to this pod stays one whatever leaves the node before its admission: containers
// that are placed one by one may be led apart by room that others leave.
bool IsAnsweredAtOnce(const admission::Machine& machine, const admission::Request& request);

// Whether more than one of its containers asks the managers for something.
bool SeveralWantSomething(const admission::Request& request);

// What may come of a pod that the kubelet admits some time from now.
struct Landing {
  bool refused = false;         // it is refused if nothing else happens before
  bool may_be_refused = false;  // or if others go before: the room that they leave may mislead it
  bool complete = true;         // false: there are more outcomes than those below
  // What is free afterwards, for every place where it may come to lie, once others have left if
  // there is no room now. In each entry at most as much is free, per NUMA node, as in the case that
  // it stands for.
  std::vector<admission::Pool> after;
};

// Where a pod of one shape may land on one node, now or after pods that are there now are gone.
//
// The kubelet takes the lowest NUMA node that fits, so room that becomes free can only move a pod
// to a lower one. Under `restricted` and `single-numa-node` every lower NUMA node that could hold
// it when empty is therefore a possible place. Wide masks, devices of several NUMA nodes and CPUs
// by the socket are not followed one by one: such a pod is charged on every NUMA node as much as it
// could take there. Under `none` and `best-effort` CPUs and devices count as sums, wherever they
// are; memory may land anywhere, and none of it is relied on.
class Lander {
 public:
  Lander(const admission::NodeState& node, const admission::Request& request);

  bool wants_nothing() const { return units_.empty(); }
  Landing From(const admission::Pool& pool) const;
  // The same if nothing leaves: what the kubelet's own algorithm does with the pod, for every
  // choice that device plugins have.
  Landing FromAsItIs(const admission::Pool& pool) const;
  // The worst case: on every NUMA node as much as the pod could take there.
  admission::Pool Worst(admission::Pool pool) const;

 private:
  // What is aligned together: the pod under scope pod, else a container.
  struct Unit {
    admission::Request request;
    admission::Wants wants;
    // With all that its init containers may leave behind: the kubelet does not always give their
    // CPUs to those that follow.
    std::int64_t most_cpus = 0;
    admission::Mask holders = 0;    // NUMA nodes that could hold it alone when empty
    bool first_of_several = false;  // a plain init container: others take over what it leaves
  };

  void AddUnit(admission::Request request, const admission::Demand& demand, bool managed,
               bool reuses);
  admission::Mask Holders(const admission::Wants& wants) const;
  admission::NodeState With(const admission::Pool& pool) const;
  bool FitsWhenEmpty() const;
  Landing Loose(const admission::Pool& pool) const;
  Landing Tied(const admission::Pool& pool) const;
  bool InitMayMove(const admission::Verdict& verdict) const;
  admission::Mask Preferred(admission::Mask place) const;
  void Land(const Unit& unit, const admission::Pool& pool, Landing& landing) const;
  void LandOnceOthersLeft(const Unit& unit, const admission::Pool& pool, Landing& landing) const;
  bool OneByOne(const Unit& unit) const;
  void Occupy(const Unit& unit, int numa, admission::Pool& pool) const;
  void OccupyAll(const Unit& unit, admission::Pool& pool) const;
  void TakeCpus(std::int64_t count, admission::Pool& pool) const;
  void OccupySums(const Unit& unit, admission::Pool& pool) const;

  const admission::NodeState& node_;
  const admission::Machine& machine_;
  const admission::Request& request_;
  bool strict_;              // the policy refuses what is not aligned
  bool tied_ = false;        // containers take over what init containers leave, where that is
  std::vector<Unit> units_;  // those that want something
};

}  // namespace scheduler::ledger
