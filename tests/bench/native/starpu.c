/* StarPU as a peer: it reads one word per line, does one round of that, and answers with nanoseconds.
 *
 *   independent   for each of 20000 empty tasks
 *   stream        for each task of frames through four stages in order, two frames at once
 *   hetero        for 60 frames through three stages that take 2, 4, 3 ms on a device and 16, 4, 6 ms
 *                 on a processor; stages wait, so that nothing but the dealing is measured
 *   quit
 *
 * Workers rest between rounds, so that they do not disturb whoever takes turns with this program.
 */
#include <starpu.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define TASKS 20000
#define STAGES 4
#define SLOTS 2
#define FRAMES 60

static int64_t nanos(void)
{
	struct timespec at;
	clock_gettime(CLOCK_MONOTONIC, &at);
	return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

static void nothing(void *buffers[], void *argument)
{
	(void)buffers;
	(void)argument;
}

static void rest(long ms)
{
	struct timespec left = {.tv_sec = 0, .tv_nsec = ms * 1000000};
	while (nanosleep(&left, &left) != 0)
		;
}

/* What the three stages take on a device and on a processor. */
static const long ON_DEVICE[3] = {2, 4, 3};
static const long ON_PROCESSOR[3] = {16, 4, 6};

#define STAGE(at)                                                                                  \
	static void device_##at(void *buffers[], void *argument)                                   \
	{                                                                                          \
		(void)buffers;                                                                     \
		(void)argument;                                                                    \
		rest(ON_DEVICE[at]);                                                               \
	}                                                                                          \
	static void processor_##at(void *buffers[], void *argument)                                \
	{                                                                                          \
		(void)buffers;                                                                     \
		(void)argument;                                                                    \
		rest(ON_PROCESSOR[at]);                                                            \
	}                                                                                          \
	static struct starpu_perfmodel model_##at = {.type = STARPU_HISTORY_BASED,                 \
						     .symbol = "peer_stage_" #at};                 \
	static struct starpu_codelet stage_##at = {.cpu_funcs = {processor_##at},                  \
						   .opencl_funcs = {device_##at},                  \
						   .nbuffers = 1,                                  \
						   .modes = {STARPU_RW},                           \
						   .model = &model_##at};

STAGE(0)
STAGE(1)
STAGE(2)

static struct starpu_perfmodel empty_model = {.type = STARPU_HISTORY_BASED, .symbol = "peer_empty"};
static struct starpu_codelet empty = {.cpu_funcs = {nothing}, .model = &empty_model};
static struct starpu_perfmodel step_model = {.type = STARPU_HISTORY_BASED, .symbol = "peer_step"};
static struct starpu_codelet step = {
    .cpu_funcs = {nothing}, .nbuffers = 2, .modes = {STARPU_RW, STARPU_RW}, .model = &step_model};

static starpu_data_handle_t frames[FRAMES];
static starpu_data_handle_t engines[STAGES];

static int64_t independent(void)
{
	int64_t begun = nanos();
	for (int at = 0; at < TASKS; at++)
		starpu_task_insert(&empty, 0);
	starpu_task_wait_for_all();
	return (nanos() - begun) / TASKS;
}

static int64_t stream(void)
{
	int64_t begun = nanos();
	for (int frame = 0; frame < TASKS / STAGES; frame++)
		for (int stage = 0; stage < STAGES; stage++)
			starpu_task_insert(&step, STARPU_RW, frames[frame % SLOTS], STARPU_RW,
					   engines[stage], 0);
	starpu_task_wait_for_all();
	return (nanos() - begun) / TASKS;
}

static int64_t hetero(void)
{
	int64_t begun = nanos();
	for (int frame = 0; frame < FRAMES; frame++) {
		starpu_task_insert(&stage_0, STARPU_RW, frames[frame], 0);
		starpu_task_insert(&stage_1, STARPU_RW, frames[frame], 0);
		starpu_task_insert(&stage_2, STARPU_RW, frames[frame], 0);
	}
	starpu_task_wait_for_all();
	return nanos() - begun;
}

int main(void)
{
	static char bytes[FRAMES + STAGES][64];
	char word[32];

	if (starpu_init(NULL) != 0) {
		fprintf(stderr, "StarPU does not start\n");
		return 1;
	}
	for (int at = 0; at < FRAMES; at++)
		starpu_variable_data_register(&frames[at], STARPU_MAIN_RAM, (uintptr_t)bytes[at], 64);
	for (int at = 0; at < STAGES; at++)
		starpu_variable_data_register(&engines[at], STARPU_MAIN_RAM,
					      (uintptr_t)bytes[FRAMES + at], 64);
	starpu_pause();
	while (scanf("%31s", word) == 1 && strcmp(word, "quit") != 0) {
		int64_t answer = -1;
		starpu_resume();
		if (strcmp(word, "independent") == 0)
			answer = independent();
		else if (strcmp(word, "stream") == 0)
			answer = stream();
		else if (strcmp(word, "hetero") == 0 && starpu_opencl_worker_get_count() == 1)
			answer = hetero();
		starpu_pause();
		printf("%lld\n", (long long)answer);
		fflush(stdout);
	}
	starpu_resume();
	for (int at = 0; at < FRAMES; at++)
		starpu_data_unregister(frames[at]);
	for (int at = 0; at < STAGES; at++)
		starpu_data_unregister(engines[at]);
	starpu_shutdown();
	return 0;
}
