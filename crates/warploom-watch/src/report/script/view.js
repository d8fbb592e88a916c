// The stretch of time that all drawings show, and the colours they are drawn in.
const bright = ["#3b6fb6", "#c9394d", "#257d43", "#9c6f00", "#0c7c97", "#8f469b", "#b95a14", "#3f7f7c", "#5f5bc0", "#6d7218"];
const dim = ["#7aa7e8", "#ff8a97", "#6fcf8a", "#e5be4f", "#63cfe6", "#d69be0", "#f5a06a", "#8fd6d2", "#aaa6f5", "#c9cf62"];
const view = {
  from: 0, to: wall, cursor: null, hidden: new Set(), picked: null, waiting: false, drawings: [],
  shortest: Math.min(wall, Math.max(1e3, wall / 1e7)),
  set(from, to) {
    const length = Math.min(wall, Math.max(view.shortest, to - from));
    const middle = (from + to) / 2;
    view.from = Math.max(0, Math.min(wall - length, middle - length / 2));
    view.to = view.from + length;
    view.draw();
  },
  zoom(factor, at) {
    const around = at ?? (view.from + view.to) / 2;
    const length = Math.min(wall, Math.max(view.shortest, (view.to - view.from) * factor));
    const share = (around - view.from) / (view.to - view.from);
    view.set(around - share * length, around + (1 - share) * length);
  },
  move(share) { const by = share * (view.to - view.from); view.set(view.from + by, view.to + by); },
  point(moment) { if (moment !== view.cursor) { view.cursor = moment; view.draw(); } },
  /// Asks for a drawing at the next frame, once.
  draw() {
    if (view.waiting) return;
    view.waiting = true;
    requestAnimationFrame(() => { view.waiting = false; view.now(); });
  },
  now() { theme = colours(); for (const drawing of view.drawings) drawing(); },
};
function isDark() {
  const forced = document.documentElement.dataset.theme;
  return forced ? forced === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}
function colours() {
  const style = getComputedStyle(document.documentElement);
  const named = (name) => style.getPropertyValue(name).trim();
  const dark = isDark();
  return {
    stage: (stage) => (dark ? dim : bright)[stage % bright.length], ink: dark ? "#10161d" : "#ffffff",
    text: named("--text"), faint: named("--faint"), line: named("--line"), soft: named("--soft"),
    card: named("--card"), accent: named("--accent"), bad: named("--bad"), warn: named("--warn"), good: named("--good"),
  };
}
let theme = colours();
/// Room for names on the left of every drawing, the same in all.
const gutter = () => (innerWidth < 640 ? 76 : 150);
/// A canvas in the screen's own pixels, cleared; `null` while it has no room.
function canvas(on, height) {
  const width = on.clientWidth, scale = devicePixelRatio || 1;
  if (width < 60) return null;
  const [w, h] = [Math.round(width * scale), Math.round(height * scale)];
  if (on.width !== w || on.height !== h) { on.width = w; on.height = h; on.style.height = height + "px"; }
  const pen = on.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = "12px system-ui, sans-serif";
  pen.textBaseline = "middle";
  const left = gutter();
  const x = (moment) => left + ((moment - view.from) / (view.to - view.from)) * (width - left - 1);
  const moment = (at) => view.from + ((at - left) / (width - left - 1)) * (view.to - view.from);
  return { pen, width, height, left, x, moment };
}
/// Round numbers between two ends, about as many as asked for; bytes are round in their own way.
function ticks(from, to, many, unit) {
  const rough = (to - from) / Math.max(1, many);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = unit === "bytes" ? 2 ** Math.ceil(Math.log2(rough)) : [1, 2, 5, 10].map((part) => part * power).find((part) => part >= rough);
  const list = [];
  for (let at = Math.ceil(from / step); at * step <= to; at += 1) list.push(at * step);
  list.step = step;
  return list;
}
/// A moment on an axis, with as many digits as tell it from the next one.
function moment(at, step) {
  if (at === 0) return "0";
  if (step >= 1e9 && view.to >= 12e10) {
    const seconds = Math.round(at / 1e9), two = (number) => String(number).padStart(2, "0");
    const minutes = Math.floor(seconds / 60);
    return (minutes < 60 ? minutes : Math.floor(minutes / 60) + ":" + two(minutes % 60)) + ":" + two(seconds % 60);
  }
  const [unit, name] = view.to >= 1e9 ? [1e9, " s"] : view.to >= 1e6 ? [1e6, " ms"] : [1e3, " µs"];
  return (at / unit).toFixed(Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / unit) - 1e-9)))) + name;
}
/// Text cut to a width.
function fitted(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let kept = search(0, text.length, (length) => pen.measureText(text.slice(0, length) + "…").width > width) - 1;
  return kept < 1 ? "" : text.slice(0, kept) + "…";
}
