// Memory that ends where nothing may be read or written: tensors of PyTorch and blocks of cudaMalloc.
//
// Each block ends at the end of a page, behind which is one without any right, and another lies before its first page. It
// keeps the alignment of a float4, so up to 15 bytes lie between its end and the next page. They, and 64 bytes before it,
// hold a byte of the block's own (what a kernel copies from beside one block is not what lies beside another), and must
// still do so when it is looked at or freed. The block itself is NaN at first.
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <unordered_map>

#include "control.h"
#include "guarded.h"

namespace dice_cpu {

namespace {

constexpr size_t kPage = 4096, kAlignment = 16, kLookedAt = 64;

struct Block {
    char* mapping;
    size_t mapped, bytes;
    char mark;
};

struct Blocks {
    std::mutex mutex;
    std::unordered_map<const void*, Block> live;
    unsigned made = 0;
    std::atomic<bool> on{false};
    std::string fault;
};

Blocks& blocks() {
    static auto* one = new Blocks;
    return *one;
}

bool untouched(const char* from, const char* to, char mark) {
    for (; from < to; ++from) {
        if (*from != mark) return false;
    }
    return true;
}

// Call with the mutex held.
void look(const char* data, const Block& block) {
    const char *first = block.mapping + kPage, *end = block.mapping + block.mapped - kPage;
    const bool behind = !untouched(data + block.bytes, end, block.mark);
    if (behind || !untouched(std::max(first, data - kLookedAt), data, block.mark))
        blocks().fault = std::string("a write ") + (behind ? "behind the end" : "before the start") + " of a block of " + std::to_string(block.bytes) + " bytes";
}

}  // namespace

bool guards_memory() { return blocks().on; }

void* guarded_new(size_t bytes) {
    const size_t body = (std::max<size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
    const size_t pages = (body + kPage - 1) / kPage * kPage;
    void* mapping = mmap(nullptr, pages + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) return nullptr;
    char* first = static_cast<char*>(mapping) + kPage;
    if (mprotect(first, pages, PROT_READ | PROT_WRITE) != 0) {
        munmap(mapping, pages + 2 * kPage);
        return nullptr;
    }
    char* data = first + pages - body;
    std::lock_guard lock(blocks().mutex);
    const char mark = static_cast<char>(0x41 + blocks().made++ % 61);
    std::memset(first, mark, pages);
    std::memset(data, 0xFF, bytes);
    blocks().live[data] = {static_cast<char*>(mapping), pages + 2 * kPage, bytes, mark};
    return data;
}

bool guarded_delete(void* data) {
    std::lock_guard lock(blocks().mutex);
    const auto found = blocks().live.find(data);
    if (found == blocks().live.end()) return false;
    look(static_cast<const char*>(data), found->second);
    munmap(found->second.mapping, found->second.mapped);
    blocks().live.erase(found);
    return true;
}

namespace {

c10::Allocator* usual = nullptr;

void release(void* data) {
    if (!guarded_delete(data)) usual->raw_deleter()(data);
}

struct GuardedAllocator final : c10::Allocator {
    c10::DataPtr allocate(size_t bytes) override {
        if (!guards_memory()) return usual->allocate(bytes);
        void* data = guarded_new(bytes);
        if (data == nullptr) throw std::bad_alloc();
        return {data, data, &release, c10::Device(c10::DeviceType::CPU)};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &release; }
    void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }
};

}  // namespace

void guard_memory(int on) {
    static GuardedAllocator allocator;
    if (on != 0 && usual == nullptr) {
        usual = c10::GetCPUAllocator();
        c10::SetAllocator(c10::DeviceType::CPU, &allocator, 0xFF);
    }
    blocks().on = on != 0;
}

const char* memory_fault() {
    static thread_local std::string text;
    std::lock_guard lock(blocks().mutex);
    for (const auto& [data, block] : blocks().live) look(static_cast<const char*>(data), block);
    text = blocks().fault;
    blocks().fault.clear();
    return text.c_str();
}

}  // namespace dice_cpu
