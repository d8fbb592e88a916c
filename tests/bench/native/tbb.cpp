// oneTBB as a peer: it reads one word per line, does one round of that, and answers with nanoseconds.
//
//   independent   for each of 20000 empty tasks of a group
//   stream        for each node of a flow graph, run only: frames through four stages in order, two at once
//   quit
#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <tbb/flow_graph.h>
#include <tbb/task_group.h>

namespace {

constexpr int tasks = 20000;
constexpr int stages = 4;
constexpr int slots = 2;

using Signal = tbb::flow::continue_msg;
using Node = tbb::flow::continue_node<Signal>;
using Clock = std::chrono::steady_clock;

double since(Clock::time_point begun)
{
	return std::chrono::duration<double, std::nano>(Clock::now() - begun).count();
}

double independent()
{
	auto begun = Clock::now();
	tbb::task_group group;
	for (int at = 0; at < tasks; ++at)
		group.run([] {});
	group.wait();
	return since(begun) / tasks;
}

// The graph is made once, as ours is planned once.
class Stream {
	tbb::flow::graph graph;
	std::vector<std::unique_ptr<Node>> nodes;

	Node &at(int frame, int stage) { return *nodes[frame * stages + stage]; }

public:
	Stream()
	{
		for (int node = 0; node < tasks; ++node)
			nodes.push_back(std::make_unique<Node>(graph, [](const Signal &) {}));
		for (int frame = 0; frame < tasks / stages; ++frame)
			for (int stage = 0; stage < stages; ++stage) {
				if (stage > 0)
					tbb::flow::make_edge(at(frame, stage - 1), at(frame, stage));
				if (frame > 0)
					tbb::flow::make_edge(at(frame - 1, stage), at(frame, stage));
				if (stage == 0 && frame >= slots)
					tbb::flow::make_edge(at(frame - slots, stages - 1), at(frame, 0));
			}
	}

	double run()
	{
		auto begun = Clock::now();
		at(0, 0).try_put(Signal());
		graph.wait_for_all();
		return since(begun) / tasks;
	}
};

} // namespace

int main()
{
	Stream stream;
	std::string word;
	while (std::cin >> word && word != "quit") {
		double answer = -1;
		if (word == "independent")
			answer = independent();
		else if (word == "stream")
			answer = stream.run();
		std::cout << answer << std::endl;
	}
}
