// The clocks of the C library, set ahead. `dice.kernels.candidate.clock_ahead` leads a candidate's calls here.
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <utility>

namespace {

std::atomic<long long> seconds_ahead{0};

int clock_gettime_ahead(clockid_t clock, struct timespec* now) {
  const int failed = clock_gettime(clock, now);
  if (!failed && now != nullptr) {
    now->tv_sec += seconds_ahead;
  }
  return failed;
}

int gettimeofday_ahead(struct timeval* now, void* zone) {
  const int failed = gettimeofday(now, zone);
  if (!failed && now != nullptr) {
    now->tv_sec += seconds_ahead;
  }
  return failed;
}

int timespec_get_ahead(struct timespec* now, int base) {
  const int known = timespec_get(now, base);
  if (known) {
    now->tv_sec += seconds_ahead;
  }
  return known;
}

time_t time_ahead(time_t* now) {
  const time_t found = time(nullptr) + seconds_ahead;
  if (now != nullptr) {
    *now = found;
  }
  return found;
}

clock_t clock_ahead() { return clock() + seconds_ahead * CLOCKS_PER_SEC; }

clock_t times_ahead(struct tms* used) { return times(used) + seconds_ahead * sysconf(_SC_CLK_TCK); }

void set_ahead(long long seconds) { seconds_ahead = seconds; }

struct Clock {
  const char* name;
  void* function;
};

struct Control {  // dice.kernels.candidate.clock_ahead has the same layout
  void (*set_ahead)(long long seconds);
  const Clock* clocks;  // a null name ends them
};

template <class F>
void* address(F* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

// Whoever asks first gets it: the loader, before it loads the first object.
extern "C" __attribute__((visibility("default"))) const Control* dice_clocks() {
  static const Clock clocks[] = {{"clock_gettime", address(clock_gettime_ahead)},
                                 {"gettimeofday", address(gettimeofday_ahead)},
                                 {"timespec_get", address(timespec_get_ahead)},
                                 {"time", address(time_ahead)},
                                 {"clock", address(clock_ahead)},
                                 {"times", address(times_ahead)},
                                 {nullptr, nullptr}};
  static const Control control = {set_ahead, clocks};
  static bool given = false;
  return std::exchange(given, true) ? nullptr : &control;
}
