// Numbers over time, on the same stretch as the lanes.
const charts = (() => {
  const tall = 130, top = 8, bottom = 20;

  /// A chart: a title, what is under the pointer, and a drawing.
  function add(title, unit, curve, limit) {
    const frame = make("div", undefined, "chart"), heading = make("h3", title), said = make("span");
    const on = make("canvas");
    on.setAttribute("role", "img");
    heading.append(said);
    frame.append(heading, on);
    element("charts").append(frame);
    on.addEventListener("pointermove", (event) => {
      const width = on.clientWidth - gutter() - 1;
      const at = view.from + ((event.offsetX - gutter()) / width) * (view.to - view.from);
      view.point(event.offsetX >= gutter() ? at : null);
    });
    on.addEventListener("pointerleave", () => view.point(null));
    view.drawings.push(() => draw(on, said, unit, curve, limit));
    return on;
  }

  function draw(on, said, unit, curve, limit) {
    const area = canvas(on, tall);
    if (!area) return;
    const { pen, width, left, x } = area;
    const { series, height } = curve();
    // A limit far above everything would leave a line on the ground: then it is only named.
    const far = limit && height > 0 && limit.value > 5 * height;
    const highest = Math.max(height, far ? 0 : limit?.value ?? 0) * (far ? 1.3 : 1.12) || 1;
    const y = (value) => tall - bottom - (value / highest) * (tall - bottom - top);
    pen.fillStyle = theme.faint;
    pen.strokeStyle = theme.line;
    for (const value of ticks(0, highest, 3, unit)) {
      const at = Math.round(y(value)) + 0.5;
      pen.beginPath(); pen.moveTo(left, at); pen.lineTo(width, at); pen.stroke();
      const text = value === 0 ? "0" : amount(value, unit === "records-per-second" ? "count" : unit);
      pen.fillText(text, left - 8 - pen.measureText(text).width, at);
    }
    const marks = ticks(view.from, view.to, (width - left) / 110);
    for (const at of marks) {
      const text = moment(at, marks.step), wide = pen.measureText(text).width;
      pen.fillText(text, Math.min(x(at) - wide / 2, width - wide - 2), tall - 8);
    }
    pen.save();
    pen.beginPath(); pen.rect(left, 0, width - left, tall - bottom + 1); pen.clip();
    series.forEach(({ points, base, colour }) => {
      const stepped = (list, back) => {
        const order = back ? [...list].reverse() : list;
        order.forEach(([from, to, value]) => {
          pen.lineTo(x(back ? to : from), y(value));
          pen.lineTo(x(back ? from : to), y(value));
        });
      };
      pen.beginPath();
      stepped(points, false);
      stepped(base ?? points.map(([from, to]) => [from, to, 0]), true);
      pen.closePath();
      pen.globalAlpha = 0.28;
      pen.fillStyle = colour;
      pen.fill();
      pen.globalAlpha = 1;
      pen.beginPath();
      stepped(points, false);
      pen.strokeStyle = colour;
      pen.lineWidth = 1.75;
      pen.stroke();
      pen.lineWidth = 1;
    });
    if (limit) {
      const at = far ? 18 : y(limit.value);
      pen.strokeStyle = theme.bad;
      pen.lineWidth = 1.5;
      pen.setLineDash([6, 4]);
      if (!far) { pen.beginPath(); pen.moveTo(left, at); pen.lineTo(width, at); pen.stroke(); }
      pen.setLineDash([]);
      pen.lineWidth = 1;
      const text = (far ? "↑ " : "") + limit.name + " " + amount(limit.value, unit), wide = pen.measureText(text).width;
      pen.fillStyle = theme.card;
      pen.globalAlpha = 0.8;
      pen.fillRect(width - wide - 10, at - 17, wide + 8, 15);
      pen.globalAlpha = 1;
      pen.fillStyle = theme.bad;
      pen.fillText(text, width - wide - 6, at - 9);
    }
    if (view.cursor !== null) {
      const at = Math.round(x(view.cursor)) + 0.5;
      pen.strokeStyle = theme.faint;
      pen.setLineDash([3, 3]);
      pen.beginPath(); pen.moveTo(at, 0); pen.lineTo(at, tall); pen.stroke();
      pen.setLineDash([]);
    }
    pen.restore();
    const last = series[series.length - 1]?.points ?? [];
    const here = view.cursor === null ? null : last.find(([from, to]) => view.cursor >= from && view.cursor < to);
    said.textContent = here ? amount(here[2], unit) + " at " + time(view.cursor) : "";
  }

  /// Records done per second, device on device, in steps as fine as the counts allow.
  function throughput() {
    const { end, outcome, device } = data.records;
    const ends = data.devices.map(() => []), rest = [];
    let many = 0;
    end.forEach((at, record) => {
      if (outcome[record] !== 0 || at < 0) return;
      (ends[device[record]] ?? rest).push(at);
      many += 1;
    });
    const lists = [...ends, rest].filter((list) => list.length);
    const owners = [...ends, rest].map((list, at) => (list.length ? at : -1)).filter((at) => at >= 0);
    if (!many) return;
    for (const list of lists) list.sort((a, b) => a - b);
    const within = (list, from, to) => search(0, list.length, (at) => list[at] >= to) - search(0, list.length, (at) => list[at] >= from);
    const curve = () => {
      const seen = lists.reduce((sum, list) => sum + within(list, view.from, view.to), 0);
      const steps = Math.max(6, Math.min(100, Math.floor(seen / 5)));
      const step = (view.to - view.from) / steps;
      const first = Math.floor(view.from / step);
      let base = null, height = 0;
      const series = lists.map((list, place) => {
        const points = [];
        for (let bin = first; bin * step < view.to; bin += 1) {
          const from = bin * step, to = Math.min((bin + 1) * step, wall);
          if (to <= from) break;
          const below = base ? base[points.length][2] : 0;
          const value = below + within(list, from, to) / ((to - from) / 1e9);
          height = Math.max(height, value);
          points.push([from, to, value]);
        }
        const made = { points, base, colour: theme.stage(owners[place]) };
        base = points;
        return made;
      });
      return { series, height };
    };
    const on = add("Records per second", "records-per-second", curve, data.bound ? { name: "stages allow", value: data.bound } : null);
    if (lists.length > 1) {
      const key = make("span");
      for (const owner of owners) {
        const swatch = make("i", "", "swatch");
        swatch.dataset.place = owner;
        key.append(swatch, deviceName(owner < ends.length ? owner : -1) + "\u2003");
      }
      on.previousSibling.firstChild.after(key);
    }
    const mean = many / (wall / 1e9);
    on.setAttribute("aria-label", "Throughput over time, " + digits(mean) + " records per second on average" + (data.bound ? ", the times of the stages allow " + digits(data.bound) : ""));
  }

  function counter(shown) {
    const { at, value, unit, budget, device } = shown;
    if (!at.length) return;
    const many = data.devices.length > 1 && device >= 0;
    const title = shown.name.charAt(0).toUpperCase() + shown.name.slice(1) + (many ? " · " + deviceName(device) : "");
    const peak = value.reduce((a, b) => Math.max(a, b), 0);
    const curve = () => {
      const points = [];
      const from = Math.max(0, search(0, at.length, (place) => at[place] > view.from) - 1);
      for (let place = from; place < at.length && at[place] <= view.to; place += 1) {
        points.push([at[place], at[place + 1] ?? wall, value[place]]);
      }
      return { series: [{ points, colour: theme.stage(Math.max(0, device)) }], height: peak };
    };
    const on = add(title, unit, curve, budget ? { name: "budget", value: budget } : null);
    on.setAttribute("aria-label", title + " over time, at most " + amount(peak, unit) + (budget ? " of a budget of " + amount(budget, unit) : ""));
  }

  return { start() { throughput(); data.counters.forEach(counter); } };
})();
