// Everything begins here.
for (const moment of document.querySelectorAll("time[datetime]")) {
  moment.title = moment.textContent;
  moment.textContent = new Date(moment.dateTime).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}
element("theme").onclick = () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  view.draw();
};
gantt.start();
charts.start();
records.start();
pictures.start();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => view.draw());
addEventListener("resize", () => view.draw());
view.now();
document.documentElement.dataset.ready = performance.now().toFixed(0);
