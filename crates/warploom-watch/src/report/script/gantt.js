// Lanes over time. What is narrower than a pixel is drawn as how much of the pixel was busy.
const gantt = (() => {
  const on = element("gantt"), brush = element("brush"), tip = element("tip"), told = element("selected");
  const axis = 26, tall = 22, low = 15, head = 22;
  let layout = [], height = 0, drawn = null, hovered = -1;

  /// Rows from top to bottom, with a line of its own above each device where there are several.
  function arrange() {
    layout = [];
    let y = axis, group = null;
    const order = spans.rows.map((row, at) => at);
    const device = (at) => data.lanes[spans.rows[at].lane].device;
    order.sort((a, b) => device(a) - device(b) || a - b);
    for (const at of order) {
      const row = spans.rows[at], lane = data.lanes[row.lane];
      if (group !== lane.device) {
        group = lane.device;
        layout.push({ title: group < 0 ? "host" : [data.devices[group], data.cards[group]].filter(Boolean).join(" · "), y, h: head });
        y += head;
      }
      const h = row.layer === 0 ? tall : low;
      layout.push({ row, name: row.layer === 0 ? lane.name : "", y, h });
      y += h;
    }
    height = y + 6;
  }

  function draw() {
    const start = performance.now();
    drawn = canvas(on, Math.max(height, axis + 40));
    if (!drawn) return;
    const { pen, width, left, x } = drawn;
    pen.fillStyle = theme.faint;
    pen.strokeStyle = theme.line;
    pen.lineWidth = 1;
    const marks = ticks(view.from, view.to, (width - left) / 110);
    for (const at of marks) {
      const place = Math.round(x(at)) + 0.5;
      pen.beginPath(); pen.moveTo(place, axis - 6); pen.lineTo(place, height); pen.stroke();
      const text = moment(at, marks.step);
      const wide = pen.measureText(text).width;
      pen.fillText(text, Math.min(place - wide / 2, width - wide - 2), 10);
    }
    let boxes = 0;
    for (const place of layout) {
      if (place.title !== undefined) {
        pen.fillStyle = theme.soft;
        pen.fillRect(0, place.y + 3, width, place.h - 4);
        pen.fillStyle = theme.text;
        pen.font = "600 12px system-ui, sans-serif";
        pen.fillText(fitted(pen, place.title, width - 16), 8, place.y + place.h / 2 + 1);
        pen.font = "12px system-ui, sans-serif";
        continue;
      }
      if (place.name) {
        pen.fillStyle = theme.text;
        pen.fillText(fitted(pen, place.name, left - 18), 8, place.y + place.h / 2);
      }
      boxes += lane(place);
    }
    pen.save();
    pen.beginPath(); pen.rect(left, 0, width - left, height); pen.clip();
    flags();
    follow();
    if (view.cursor !== null) {
      const at = Math.round(x(view.cursor)) + 0.5;
      pen.strokeStyle = theme.faint;
      pen.setLineDash([3, 3]);
      pen.beginPath(); pen.moveTo(at, axis - 6); pen.lineTo(at, height); pen.stroke();
      pen.setLineDash([]);
    }
    pen.restore();
    overview();
    Object.assign(on.dataset, { from: view.from, to: view.to, boxes, ms: (performance.now() - start).toFixed(2) });
  }

  /// One row; says how many spans it looked at.
  function lane({ row, y, h }) {
    const { pen, width, left } = drawn;
    const scale = (width - left - 1) / (view.to - view.from);
    const pixels = Math.ceil(width - left);
    const busy = new Float32Array(pixels), most = new Float32Array(pixels), whose = new Int32Array(pixels).fill(-1);
    const first = search(row.from, row.to, (at) => spans.cover[at] > view.from);
    let at = first, narrow = false;
    for (; at < row.to && spans.begin[at] < view.to; at += 1) {
      if (spans.end[at] < view.from || view.hidden.has(spans.stage[at])) continue;
      const x0 = Math.max(0, (spans.begin[at] - view.from) * scale);
      const x1 = Math.min(pixels, (spans.end[at] - view.from) * scale);
      if (x1 - x0 >= 1.5) { box(at, left + x0, y, x1 - x0, h); continue; }
      narrow = true;
      const pixel = Math.min(pixels - 1, Math.floor(x0));
      // Even the shortest work leaves a trace.
      const share = Math.max(x1 - x0, 0.08);
      busy[pixel] += share;
      if (share > most[pixel]) { most[pixel] = share; whose[pixel] = spans.stage[at]; }
    }
    if (narrow) density(busy, whose, y, h);
    return at - first;
  }

  function density(busy, whose, y, h) {
    const { pen, left } = drawn;
    const level = (pixel) => Math.min(4, Math.ceil(busy[pixel] * 4));
    for (let from = 0; from < whose.length;) {
      let to = from + 1;
      if (whose[from] >= 0) {
        const stage = whose[from], shade = level(from);
        while (to < whose.length && whose[to] === stage && level(to) === shade) to += 1;
        pen.globalAlpha = 0.3 + 0.7 * (shade / 4);
        pen.fillStyle = theme.stage(stage);
        pen.fillRect(left + from, y + 2, to - from, h - 4);
      }
      from = to;
    }
    pen.globalAlpha = 1;
  }

  function box(at, x, y, wide, h) {
    const { pen } = drawn;
    const inset = 2 + 2 * spans.depth[at];
    pen.fillStyle = theme.stage(spans.stage[at]);
    const gap = wide > 6 ? 0.75 : 0;
    pen.beginPath();
    pen.roundRect(x, y + inset, wide - gap, h - 2 * inset, wide > 8 ? 3 : 0);
    pen.fill();
    if (spans.depth[at] || at === hovered) {
      pen.strokeStyle = at === hovered ? theme.text : theme.card;
      pen.lineWidth = at === hovered ? 2 : 1;
      pen.stroke();
      pen.lineWidth = 1;
    }
    if (wide > 34 && h > 18) {
      const text = fitted(pen, stageName(spans.stage[at]), wide - 10);
      pen.fillStyle = theme.ink;
      if (text) pen.fillText(text, x + 5, y + h / 2 + 0.5);
    }
  }

  function flags() {
    const { pen, x } = drawn;
    for (const mark of data.marks) {
      if (mark.at < view.from || mark.at > view.to) continue;
      const at = Math.round(x(mark.at)) + 0.5;
      const bad = mark.occasion === "lost" || mark.occasion === "quarantine";
      pen.strokeStyle = pen.fillStyle = bad ? theme.bad : mark.occasion === "readmitted" ? theme.good : theme.warn;
      pen.beginPath(); pen.moveTo(at, axis - 8); pen.lineTo(at, height); pen.stroke();
      pen.beginPath(); pen.moveTo(at, axis - 8); pen.lineTo(at + 8, axis - 4); pen.lineTo(at, axis); pen.fill();
    }
  }

  /// The way of the picked batch from stage to stage.
  function follow() {
    if (!view.picked) return;
    const { pen, x } = drawn;
    const middle = new Map();
    for (const place of layout) if (place.row) middle.set(place.row, place);
    pen.strokeStyle = theme.text;
    let before = null;
    for (const { at, row } of view.picked.steps) {
      const place = middle.get(row), y = place.y + place.h / 2;
      const x0 = x(spans.begin[at]), x1 = x(spans.end[at]);
      pen.lineWidth = 2;
      pen.strokeRect(x0, place.y + 2, Math.max(2, x1 - x0), place.h - 4);
      if (before) {
        const bend = Math.max(12, Math.abs(x0 - before.x) / 2);
        pen.lineWidth = 1.25;
        pen.beginPath(); pen.moveTo(before.x, before.y);
        pen.bezierCurveTo(before.x + bend, before.y, x0 - bend, y, x0, y);
        pen.stroke();
      }
      before = { x: x1, y };
    }
    pen.lineWidth = 1;
  }

  /// The whole run, small, with the part that is shown.
  const busyShare = (() => {
    let bins = null;
    return (pixels) => {
      if (bins && bins.length === pixels) return bins;
      bins = new Float32Array(pixels);
      for (let at = 0; at < spans.length; at += 1) {
        if (spans.depth[at]) continue;
        const from = (spans.begin[at] / wall) * pixels, to = (spans.end[at] / wall) * pixels;
        for (let pixel = Math.floor(from); pixel <= to && pixel < pixels; pixel += 1) {
          bins[pixel] += Math.min(to, pixel + 1) - Math.max(from, pixel);
        }
      }
      return bins;
    };
  })();
  function overview() {
    const area = canvas(brush, 34);
    if (!area) return;
    const { pen, width, left, height: h } = area;
    const pixels = Math.floor(width - left);
    const bins = busyShare(pixels), rows = Math.max(1, spans.rows.length);
    pen.fillStyle = theme.soft;
    pen.fillRect(left, 0, pixels, h);
    pen.fillStyle = theme.stage(0);
    for (let pixel = 0; pixel < pixels; pixel += 1) {
      const share = Math.min(1, bins[pixel] / rows) * (h - 4);
      if (share > 0) pen.fillRect(left + pixel, h - share, 1, share);
    }
    const x0 = left + (view.from / wall) * pixels, x1 = left + (view.to / wall) * pixels;
    pen.fillStyle = theme.text;
    pen.globalAlpha = 0.18;
    pen.fillRect(left, 0, x0 - left, h);
    pen.fillRect(x1, 0, left + pixels - x1, h);
    pen.globalAlpha = 1;
    pen.strokeStyle = theme.accent;
    pen.lineWidth = 2;
    pen.strokeRect(x0 + 1, 1, Math.max(3, x1 - x0 - 2), h - 2);
    pen.lineWidth = 1;
    pen.fillStyle = theme.faint;
    pen.fillText("whole run", 8, h / 2);
  }

  /// The span under a point, or close to it: the innermost, or the nearest; -1 for none.
  function hit(px, py) {
    if (!drawn || px < drawn.left) return -1;
    const place = layout.find((place) => place.row && py >= place.y && py < place.y + place.h);
    if (!place) return -1;
    const here = drawn.moment(px), near = drawn.moment(px + 3) - here;
    const { row } = place;
    let best = -1, distance = near;
    for (let at = search(row.from, row.to, (at) => spans.cover[at] >= here - near); at < row.to && spans.begin[at] <= here + near; at += 1) {
      if (view.hidden.has(spans.stage[at])) continue;
      const away = Math.max(0, spans.begin[at] - here, here - spans.end[at]);
      if (away <= distance && spans.end[at] >= here - near) { best = at; distance = away; }
    }
    return best;
  }

  function lines(at) {
    const length = spans.end[at] - spans.begin[at], from = data.spans;
    const list = [time(length) + ", from " + time(spans.begin[at]) + " to " + time(spans.end[at])];
    if (from.count[at]) list.push(recordNames(from.first[at], from.count[at]), "batch " + from.generation[at]);
    list.push(from.clock[at] ? "times of the device" : "times of the host");
    return list;
  }

  function show(at, px, py) {
    if (at < 0) { tip.hidden = true; return; }
    tip.replaceChildren(make("strong", stageName(spans.stage[at])), ...lines(at).map((line) => make("span", line)));
    tip.hidden = false;
    const room = on.clientWidth - tip.offsetWidth - 8;
    tip.style.left = Math.max(4, Math.min(room, px + 14)) + "px";
    tip.style.top = py + 18 - (element("lanes")?.scrollTop ?? 0) + "px";
  }

  function pick(at) {
    view.picked = null;
    told.textContent = "";
    if (at >= 0) {
      const batch = data.spans.generation[at];
      const steps = [];
      for (const row of spans.rows) {
        for (let other = row.from; other < row.to; other += 1) {
          if (data.spans.generation[other] === batch && data.spans.count[other]) steps.push({ at: other, row });
        }
      }
      if (!steps.length) steps.push({ at, row: spans.rows.find((row) => at >= row.from && at < row.to) });
      steps.sort((a, b) => spans.begin[a.at] - spans.begin[b.at]);
      view.picked = { batch, at, steps };
      const first = steps[0].at, last = Math.max(...steps.map((step) => spans.end[step.at]));
      const names = recordNames(data.spans.first[first], data.spans.count[first]);
      const way = steps.map((step) => stageName(spans.stage[step.at]) + " " + time(spans.end[step.at] - spans.begin[step.at]));
      told.textContent = "Batch " + batch + (names ? ", " + names : "") + ": " + way.join(" → ") + "; " + time(last - spans.begin[first]) + " in all.";
    }
    view.draw();
  }

  /// The next batch after the picked one, or the one before it.
  function step(by) {
    const known = [...new Set(data.spans.generation.filter((_, at) => data.spans.count[at]))].sort((a, b) => a - b);
    if (!known.length) return;
    const now = view.picked ? known.indexOf(view.picked.batch) + by : by > 0 ? 0 : known.length - 1;
    const batch = known[Math.max(0, Math.min(known.length - 1, now))];
    const at = data.spans.generation.findIndex((other, place) => other === batch && data.spans.count[place]);
    pick(at);
    if (spans.end[at] < view.from || spans.begin[at] > view.to) {
      const length = view.to - view.from;
      view.set(spans.begin[at] - length / 4, spans.begin[at] + (3 * length) / 4);
    }
  }

  function listen() {
    let held = null;
    on.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      held = { x: event.offsetX, from: view.from, to: view.to, moved: false };
      on.setPointerCapture(event.pointerId);
    });
    on.addEventListener("pointermove", (event) => {
      if (!drawn) return;
      if (held) {
        const by = event.offsetX - held.x;
        if (Math.abs(by) > 3) { held.moved = true; on.classList.add("held"); tip.hidden = true; }
        if (held.moved) {
          const moment = (by / (drawn.width - drawn.left)) * (held.to - held.from);
          view.set(held.from - moment, held.to - moment);
        }
        return;
      }
      hovered = hit(event.offsetX, event.offsetY);
      show(hovered, event.offsetX, event.offsetY);
      view.cursor = null;
      view.point(event.offsetX >= drawn.left ? drawn.moment(event.offsetX) : null);
    });
    on.addEventListener("pointerup", (event) => {
      if (held && !held.moved) pick(hit(event.offsetX, event.offsetY));
      held = null;
      on.classList.remove("held");
    });
    on.addEventListener("pointerleave", () => { tip.hidden = true; hovered = -1; view.point(null); });
    on.addEventListener("dblclick", (event) => view.zoom(0.4, drawn?.moment(event.offsetX)));
    on.addEventListener("wheel", (event) => {
      const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
      if (!event.ctrlKey && !event.metaKey && !sideways && !event.shiftKey) return;
      event.preventDefault();
      if (event.ctrlKey || event.metaKey) view.zoom(Math.exp(event.deltaY * 0.004), drawn?.moment(event.offsetX));
      else view.move((event.deltaX || event.deltaY) / 900);
    }, { passive: false });
    const keys = {
      ArrowLeft: () => view.move(-0.15), ArrowRight: () => view.move(0.15), "+": () => view.zoom(0.6), "=": () => view.zoom(0.6),
      "-": () => view.zoom(1.7), 0: () => view.set(0, wall), Home: () => view.set(0, view.to - view.from),
      End: () => view.set(wall - view.to + view.from, wall), n: () => step(1), p: () => step(-1), Escape: () => pick(-1),
    };
    on.addEventListener("keydown", (event) => {
      const deed = keys[event.key];
      if (!deed || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      deed();
    });
    brushing();
    element("zoom-in").onclick = () => view.zoom(0.5);
    element("zoom-out").onclick = () => view.zoom(2);
    element("zoom-all").onclick = () => view.set(0, wall);
  }

  /// Dragging in the small drawing: an edge of the window, the window, or a new one.
  function brushing() {
    let grip = null;
    const moment = (event) => ((event.offsetX - gutter()) / (brush.clientWidth - gutter())) * wall;
    brush.addEventListener("pointerdown", (event) => {
      const at = moment(event), near = (8 / (brush.clientWidth - gutter())) * wall;
      brush.setPointerCapture(event.pointerId);
      if (Math.abs(at - view.from) < near) grip = (to) => view.set(Math.min(to, view.to), view.to);
      else if (Math.abs(at - view.to) < near) grip = (to) => view.set(view.from, Math.max(to, view.from));
      else if (at > view.from && at < view.to && view.to - view.from < wall) {
        const since = at - view.from, length = view.to - view.from;
        grip = (to) => view.set(to - since, to - since + length);
      } else grip = (to) => view.set(Math.min(at, to), Math.max(at, to));
    });
    brush.addEventListener("pointermove", (event) => { if (grip) grip(moment(event)); });
    for (const ending of ["pointerup", "pointercancel"]) brush.addEventListener(ending, () => { grip = null; });
  }

  function legend() {
    const used = new Set(spans.stage);
    data.stages.forEach((name, stage) => {
      if (!used.has(stage)) return;
      const button = make("button");
      const swatch = make("i", "", "swatch");
      swatch.dataset.stage = name;
      button.type = "button";
      button.append(swatch, name);
      button.setAttribute("aria-pressed", "true");
      button.onclick = () => {
        if (!view.hidden.delete(stage)) view.hidden.add(stage);
        button.setAttribute("aria-pressed", String(!view.hidden.has(stage)));
        view.draw();
      };
      element("legend").append(button);
    });
  }
  /// The small squares everywhere on the page, in the colours of the drawing.
  function swatches() {
    for (const swatch of document.querySelectorAll(".swatch")) {
      const stage = Number(swatch.dataset.place ?? data.stages.indexOf(swatch.dataset.stage));
      if (stage >= 0) swatch.style.background = theme.stage(stage);
    }
  }

  function start() {
    arrange();
    legend();
    listen();
    const busiest = data.spans.joined ? " Of " + grouped(data.spans.joined) + " spans, short neighbours are joined." : "";
    on.setAttribute("aria-label", spans.length + " spans on " + data.lanes.length + " lanes over " + time(wall) + "." + busiest);
    if (busiest) element("timeline-help").append(busiest);
    view.drawings.push(draw, swatches);
  }
  return { start };
})();
