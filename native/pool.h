// A few threads that wait for work. They are made when first needed; a fork leaves them behind and makes new ones.
#pragma once

namespace ptokit {

// Calls `work(context, part)` for every part below `parts`, part 0 on the calling thread, and returns when all are
// done. Where the threads are busy with another call, or cannot be had, the caller does all parts itself, in order.
void in_parts(int parts, void (*work)(void* context, int part), void* context);

int threads();
void set_threads(int count);

// The CPUs that this process may use: its affinity, and the quota of its control group.
int usable_cpus();

}  // namespace ptokit
