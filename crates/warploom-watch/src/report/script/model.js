// The recording, decoded: columns of numbers, and rows of the drawing that are ranges of them.
const data = JSON.parse(element("data").textContent);
const wall = Math.max(data.wall, 1);
const spans = (() => {
  const from = data.spans;
  const many = from.begin.length;
  const begin = new Float64Array(many), end = new Float64Array(many);
  const cover = new Float64Array(many), depth = new Uint8Array(many);
  const stage = Uint32Array.from(from.stage);
  const rows = [];
  let at = 0;
  data.lanes.forEach((lane, number) => lane.layers.forEach((count, layer) => {
    const first = at;
    let moment = 0, latest = 0;
    const open = [];
    for (; at < first + count; at += 1) {
      moment += from.begin[at];
      begin[at] = moment;
      end[at] = moment + from.length[at];
      latest = Math.max(latest, end[at]);
      cover[at] = latest;
      while (open.length && open[open.length - 1] <= moment) open.pop();
      depth[at] = Math.min(open.length, 3);
      open.push(end[at]);
    }
    rows.push({ lane: number, layer, from: first, to: at });
  }));
  return { begin, end, cover, depth, stage, rows, length: many };
})();
/// The first place of a sorted stretch at which `test` holds.
function search(from, to, test) {
  while (from < to) {
    const middle = (from + to) >> 1;
    if (test(middle)) to = middle; else from = middle + 1;
  }
  return from;
}
const deviceName = (device) => (device < 0 ? "host" : data.devices[device] ?? "?");
const stageName = (stage) => data.stages[stage] ?? "?";
function recordNames(first, count) {
  if (!count) return "";
  const name = (at) => data.records.name[at] ?? "record " + at;
  return count === 1 ? name(first) : name(first) + " … " + name(first + count - 1) + " (" + count + ")";
}
