// The ledger of launches: a page that the grader shares with the candidate's process. The grader deals a secret word for
// each launch to come, and a launch turns the next word into its mark. So the grader reads how many launches there were
// and of which kernels; a number written elsewhere counts nothing, and a page that somebody else wrote to shows it.
//
// dice.kernels.sandbox.launch_ledger has the same layout and arithmetic.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace dice_ledger {

constexpr std::size_t kWords = 16383;

struct Page {
  std::atomic<std::uint64_t> next;
  std::uint64_t words[kWords];
};

inline std::uint64_t name_hash(const char* name) {  // FNV-1a
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (; *name != 0; ++name) {
    hash = (hash ^ static_cast<unsigned char>(*name)) * 0x100000001b3u;
  }
  return hash;
}

// Launches beyond the last word are counted, without a mark.
inline void mark(Page* page, const char* kernel, bool refused) {
  if (page == nullptr) {
    return;
  }
  const std::uint64_t place = page->next.fetch_add(1, std::memory_order_relaxed);
  if (place < kWords) {
    const std::uint64_t word = page->words[place];
    page->words[place] = ((word << 29 | word >> 35) * 0x9e3779b97f4a7c15u) ^ (name_hash(kernel) + (refused ? 1 : 0));
  }
}

}  // namespace dice_ledger
