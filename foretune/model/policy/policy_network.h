// A network that scores the actions of a nest (loop/loop_actions.h) by what an agent sees of it
// (loop/policy_observation.h): every loop is encoded alone, then beside the sums of what lies
// around and inside of it and its two neighbours, and each loop's operations are scored by the same
// weights.
//
//   h = relu(embed [loop, whole])                                          of every loop
//   g = relu(mix [h, sum of h around, sum of h inside, h next outside, h next inside])
//   scores of the loop's operations = heads g
//   p = relu(pool [mean of g, whole]),   score of stopping, value = out p
//
// Sums are scaled by kSumScale. Every sum of a layer is one chain of fused multiply-adds in the
// order of the inputs, so that all CPUs give the same bits.
//
// Thread safety: plain data; PolicyEvaluator is for one thread. Cost: some microseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "foretune/base/byte_io.h"
#include "foretune/base/result.h"
#include "foretune/hardware/cpu.h"
#include "foretune/loop/loop_actions.h"
#include "foretune/loop/policy_observation.h"
#include "foretune/model/network/network.h"

namespace foretune {

struct PolicyNetwork {
  static constexpr float kSumScale = 0.25F;
  static constexpr std::uint32_t kMaxWidth = 512;
  // Parts of the input of `mix`.
  static constexpr std::size_t kMixed = 5;

  DenseLayer embed;
  DenseLayer mix;
  DenseLayer heads;
  DenseLayer pool;
  DenseLayer out;  // the score of stopping, then the value of the state

  [[nodiscard]] std::size_t width() const { return embed.outputs; }
  // A network of zeros.
  static PolicyNetwork of_width(std::uint32_t width);
  // The layers, in the order above.
  [[nodiscard]] std::vector<const DenseLayer*> layers() const;
  [[nodiscard]] std::vector<DenseLayer*> layers();
  // Refuses layers that do not fit each other, the actions and the observation.
  [[nodiscard]] Status validate() const;
  bool operator==(const PolicyNetwork&) const = default;
};

// The least and the greatest value of an input in training.
struct InputRange {
  float low = 0;
  float high = 0;
};

// Makes inputs that had one value in training a part of the biases, and forgets what other values
// would mean: nothing was learned of them, so the first weights would decide. The facts of the only
// machine are such inputs, and a computation's where all are of one kind. `loops` has a range for
// every column of a loop, `whole` for every column of the whole.
void fix_constants(PolicyNetwork& network, std::span<const InputRange> loops,
                   std::span<const InputRange> whole);

// Makes an operation one that is not chosen while anything else is legal. One that was never legal
// in training has the score of its first weights.
void never_choose(PolicyNetwork& network, std::size_t operation);

void put_policy_network(ByteWriter& writer, const PolicyNetwork& network);
// Errors: kCorrupt.
Result<PolicyNetwork> get_policy_network(ByteReader& reader);

struct PolicyScores {
  std::vector<float> actions = std::vector<float>(loop::LoopActions::kCount);
  float value = 0;
};

// The slow, obviously right evaluation, of the first `count` loops; to the bit that of
// PolicyEvaluator. Scores of operations on further loops are 0.
PolicyScores policy_reference(const PolicyNetwork& network, std::span<const float> loops,
                              std::span<const float> whole, std::size_t count);

class PolicyEvaluator {
 public:
  // The network has passed validate(), and is copied.
  explicit PolicyEvaluator(const PolicyNetwork& network, CpuIsa isa = best_cpu_isa());
  ~PolicyEvaluator();
  PolicyEvaluator(PolicyEvaluator&&) noexcept;
  PolicyEvaluator& operator=(PolicyEvaluator&&) noexcept;

  // `loops` and `whole` as PolicyObserver writes them, for a nest of `count` loops. Returns the
  // value of the state.
  float score(std::span<const float> loops, std::span<const float> whole, std::size_t count,
              std::span<float> actions);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace foretune
