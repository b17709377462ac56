#include "races.h"

#include <link.h>

#include <algorithm>
#include <cstring>

namespace dice_cpu {

namespace {

constexpr unsigned kMaxReports = 16;
constexpr size_t kMaxWords = size_t{1} << 23;

std::string place(unsigned linear, dim3 dim) {
    return "(" + std::to_string(linear % dim.x) + "," + std::to_string(linear / dim.x % dim.y) + "," + std::to_string(linear / dim.x / dim.y) + ")";
}

uint32_t block_number(const Thread& thread) {
    return (thread.block_index.z * thread.grid_dim.y + thread.block_index.y) * thread.grid_dim.x + thread.block_index.x;
}

}  // namespace

Races& Races::instance() {
    static auto* one = new Races;
    return *one;
}

void Races::clear() {
    words_.clear();
    text_.clear();
    reported_ = 0;
    pending_ = Pending();
}

void Races::begin_launch(const Grid& grid, const char* stacks, size_t stacks_bytes, const char* shared, size_t shared_bytes) {
    settle();
    ++launch_;
    kernel_ = grid.kernel->name;
    block_dim_ = grid.block_dim;
    grid_dim_ = grid.grid_dim;
    stacks_ = stacks;
    stacks_end_ = stacks + stacks_bytes;
    block_atomics_.assign(grid.blocks(), 0);
    if (words_.size() > kMaxWords / 2) words_.clear();
    dynamic_shared_ = {shared, shared + shared_bytes};
    blocks_begun_ = 0;
}

// Shared memory: the dynamic buffer, and the thread-local variables of loaded objects, as far as they exist yet.
void Races::find_shared() {
    shared_ranges_.assign(1, dynamic_shared_);
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* data) {
            for (int i = 0; info->dlpi_tls_data != nullptr && i < info->dlpi_phnum; ++i)
                if (info->dlpi_phdr[i].p_type == PT_TLS) {
                    const char* start = static_cast<const char*>(info->dlpi_tls_data);
                    static_cast<decltype(shared_ranges_)*>(data)->emplace_back(start, start + info->dlpi_phdr[i].p_memsz);
                }
            return 0;
        },
        &shared_ranges_);
}

void Races::begin_block(const Thread& first) {
    settle();
    block_ = block_number(first);
    if (++blocks_begun_ <= 2) find_shared();
    ++epoch_;
    const unsigned threads = block_dim_.x * block_dim_.y * block_dim_.z;
    thread_atomics_.assign(threads, 0);
    clocks_.assign(threads, 1);
    known_.assign(threads, std::vector<uint32_t>(32, 0));
}

void Races::warp_met(unsigned warp, uint32_t lanes) {
    std::vector<uint32_t> joined(32, 0);
    for (unsigned lane = 0; lane < 32; ++lane)
        if ((lanes >> lane) & 1) {
            const unsigned thread = 32 * warp + lane;
            for (unsigned other = 0; other < 32; ++other) joined[other] = std::max(joined[other], known_[thread][other]);
            joined[lane] = std::max(joined[lane], clocks_[thread]);
        }
    for (unsigned lane = 0; lane < 32; ++lane)
        if ((lanes >> lane) & 1) {
            known_[32 * warp + lane] = joined;
            ++clocks_[32 * warp + lane];
        }
}

bool Races::is_shared(const void* address) const {
    const char* p = static_cast<const char*>(address);
    return std::any_of(shared_ranges_.begin(), shared_ranges_.end(), [p](const auto& range) { return p >= range.first && p < range.second; });
}

Races::Event Races::event(const Thread& thread, uint8_t bytes) const {
    return {sequence_, block_, thread.linear, epoch_, clocks_[thread.linear], bytes, true};
}

bool Races::ordered(const Event& earlier, const Thread& now, bool shared) const {
    if (earlier.block != block_) return shared || (block_atomics_[earlier.block] > earlier.sequence && block_atomics_[block_] != 0);
    if (earlier.thread == now.linear || earlier.epoch != epoch_) return true;
    if (thread_atomics_[earlier.thread] > earlier.sequence && thread_atomics_[now.linear] > thread_atomics_[earlier.thread]) return true;
    return earlier.thread / 32 == now.linear / 32 && known_[now.linear][earlier.thread % 32] >= earlier.clock;
}

void Races::atomic(const Thread& thread) {
    settle();
    thread_atomics_[thread.linear] = block_atomics_[block_] = ++sequence_;
}

// The pending write has been made by now: whether it changed anything decides whether it was a race.
void Races::settle() {
    if (pending_.address == nullptr) return;
    const bool changed = std::memcmp(pending_.before, pending_.address, pending_.bytes) != 0;
    for (Word* word : pending_.words)
        if (word != nullptr) word->write.changed = changed;
    if (changed && pending_.conflict) report(pending_.thread, pending_.other, true, pending_.with_write, pending_.address);
    pending_.address = nullptr;
}

void Races::access(const Thread& thread, const void* address, unsigned bytes, bool write) {
    const char* p = static_cast<const char*>(address);
    if (p >= stacks_ && p < stacks_end_) return;
    settle();
    ++sequence_;
    const bool shared = is_shared(address);
    const auto start = reinterpret_cast<uintptr_t>(address);
    if (write) {
        pending_ = Pending();
        pending_.address = const_cast<unsigned char*>(static_cast<const unsigned char*>(address));
        pending_.bytes = std::min(bytes, 16u);
        std::memcpy(pending_.before, address, pending_.bytes);
        pending_.thread = thread;
        std::fill(std::begin(pending_.words), std::end(pending_.words), nullptr);
    }
    unsigned index = 0;
    for (uintptr_t at = start; at < start + bytes; ++index) {
        const uintptr_t key = at / 8, next = std::min(start + bytes, (key + 1) * 8);
        const auto mask = static_cast<uint8_t>(((1u << (next - at)) - 1) << (at % 8));
        at = next;
        if (words_.size() >= kMaxWords && words_.find(key) == words_.end()) continue;
        Word& word = words_[key];
        if (word.launch != launch_) word = Word{launch_, {}, {}};
        const bool after_write = (word.write.bytes & mask) != 0 && !ordered(word.write, thread, shared);
        if (write) {
            const bool after_read = (word.read.bytes & mask) != 0 && !ordered(word.read, thread, shared);
            if (after_write || after_read) {
                pending_.conflict = true;
                pending_.with_write = after_write;
                pending_.other = after_write ? word.write : word.read;
            }
            word.write = event(thread, mask);
            if (index < 3) pending_.words[index] = &word;
        } else {
            if (after_write && word.write.changed) report(thread, word.write, false, true, address);
            word.read = event(thread, mask);
        }
    }
}

void Races::report(const Thread& now, const Event& other, bool now_writes, bool other_wrote, const void* address) {
    if (reported_ >= kMaxReports) return;
    find_shared();
    const bool shared = is_shared(address), same_block = other.block == block_;
    std::string line = "kernel " + kernel_ + ": thread " + place(now.linear, block_dim_) + (now_writes ? " writes" : " reads") + " what thread " +
                       place(other.thread, block_dim_) + (other_wrote ? " writes" : " reads") + " in " + (shared ? "shared" : "global") + " memory, block " +
                       place(block_, grid_dim_) + (same_block ? "" : " and block " + place(other.block, grid_dim_)) + ", with nothing between to order them" +
                       (same_block && other.thread / 32 == now.linear / 32 ? " (same warp)" : "");
    if (text_.find(line) != std::string::npos) return;
    text_ += line + "\n";
    ++reported_;
}

}  // namespace dice_cpu

extern "C" {

DICE_CPU_API void dice_cpu_watch_races(int on) {
    dice_cpu::Races::instance().clear();
    dice_cpu::Races::instance().watching = on != 0;
}

DICE_CPU_API const char* dice_cpu_race_text() {
    dice_cpu::Races::instance().settle();
    return dice_cpu::Races::instance().text();
}
}
