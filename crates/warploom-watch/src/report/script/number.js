// Numbers as people read them; the same rules as in the rest of the page.
function digits(value) {
  const size = Math.abs(value);
  if (!Number.isFinite(value)) return "?";
  if (size >= 99.95) return value.toFixed(0);
  if (size >= 9.995) return value.toFixed(1);
  if (size >= 0.9995 || size === 0) return value.toFixed(2);
  return value.toFixed(Math.min(9, Math.max(2, 2 - Math.floor(Math.log10(size)))));
}
function time(ns) {
  if (ns <= 0) return "0";
  if (ns < 1e3) return Math.round(ns) + " ns";
  if (ns < 1e6) return digits(ns / 1e3) + " µs";
  if (ns < 1e9) return digits(ns / 1e6) + " ms";
  if (ns < 6e10) return digits(ns / 1e9) + " s";
  const seconds = Math.round(ns / 1e9);
  const two = (number) => String(number).padStart(2, "0");
  if (seconds >= 3600) return Math.floor(seconds / 3600) + " h " + two(Math.floor(seconds / 60) % 60) + " min";
  return Math.floor(seconds / 60) + " min " + two(seconds % 60) + " s";
}
function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  let unit = 0;
  while (value >= 1023.95 && unit + 1 < units.length) { value /= 1024; unit += 1; }
  return (unit === 0 ? Math.round(value) : value.toFixed(1)) + " " + units[unit];
}
const grouped = (number) => (number > 9999 ? String(number).replace(/\B(?=(\d{3})+$)/g, "\u202f") : String(number));
function amount(value, unit) {
  if (unit === "bytes") return bytes(value);
  if (unit === "share") return digits(value * 100) + " %";
  return digits(value) + (unit === "records-per-second" ? " records/s" : "");
}
const element = (id) => document.getElementById(id);
/// A new element with text in it; text is never taken for markup.
function make(tag, text, kind) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}
