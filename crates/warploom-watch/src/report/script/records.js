// The list of records: filtered, sorted, a page at a time, so that any number of them will do.
const records = (() => {
  const { name, outcome, begin, end, device, attempts, reason } = data.records;
  const words = ["ok", "failed", "skipped", "not-started"], page = 50;
  const shown = new Set([0, 1, 2, 3]);
  let wanted = "", key = null, down = false, list = [], at = 0;
  const length = (record) => (begin[record] >= 0 && end[record] >= 0 ? end[record] - begin[record] : -1);
  const keys = {
    name: (record) => name[record], outcome: (record) => outcome[record], device: (record) => device[record],
    begin: (record) => begin[record], time: length, attempts: (record) => attempts[record],
  };
  const said = (record) => (reason[record] < 0 ? "" : (data.reasons[reason[record]].code ?? "") + " " + data.reasons[reason[record]].text);

  function choose() {
    const text = wanted.toLowerCase();
    const fits = (record) => shown.has(outcome[record]) && (!text || name[record].toLowerCase().includes(text) || said(record).toLowerCase().includes(text));
    list = name.map((_, record) => record).filter(fits);
    if (key) {
      const of = keys[key], compare = new Intl.Collator(undefined, { numeric: true }).compare;
      list.sort((a, b) => (key === "name" ? compare(of(a), of(b)) : of(a) - of(b)) || a - b);
      if (down) list.reverse();
    }
    at = 0;
    draw();
  }

  function row(record) {
    const line = make("tr"), title = make("th", name[record]);
    title.scope = "row";
    if (reason[record] >= 0) title.append(make("small", said(record).trim()));
    const word = words[outcome[record]];
    const state = make("td", word.replace("-", " "), "outcome " + word);
    const number = (text) => make("td", text, "n");
    line.append(
      title, state, make("td", device[record] < 0 ? "" : deviceName(device[record])),
      number(begin[record] < 0 ? "" : time(begin[record])), number(length(record) < 0 ? "" : time(length(record))), number(attempts[record] || ""),
    );
    return line;
  }

  function draw() {
    const last = Math.max(0, Math.ceil(list.length / page) - 1);
    at = Math.max(0, Math.min(last, at));
    element("list").tBodies[0].replaceChildren(...list.slice(at * page, (at + 1) * page).map(row));
    element("found").textContent = grouped(list.length) + " of " + grouped(name.length);
    element("page").textContent = "page " + (at + 1) + " of " + (last + 1);
    element("page-back").disabled = at === 0;
    element("page-on").disabled = at === last;
    document.querySelector(".pages").hidden = last === 0;
  }

  function start() {
    if (!name.length) { element("records-section").hidden = true; return; }
    words.forEach((word, number) => {
      const many = outcome.filter((other) => other === number).length;
      if (!many) return;
      const chip = make("button", word.replace("-", " ") + " " + grouped(many));
      chip.type = "button";
      chip.dataset.outcome = word;
      chip.setAttribute("aria-pressed", "true");
      chip.onclick = () => {
        if (!shown.delete(number)) shown.add(number);
        chip.setAttribute("aria-pressed", String(shown.has(number)));
        choose();
      };
      element("chips").append(chip);
    });
    element("find").oninput = (event) => { wanted = event.target.value.trim(); choose(); };
    element("page-back").onclick = () => { at -= 1; draw(); };
    element("page-on").onclick = () => { at += 1; draw(); };
    for (const button of element("list").querySelectorAll("[data-sort]")) {
      button.onclick = () => {
        down = key === button.dataset.sort && !down;
        key = button.dataset.sort;
        for (const other of element("list").querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
        button.parentElement.setAttribute("aria-sort", down ? "descending" : "ascending");
        choose();
      };
    }
    choose();
  }
  return { start };
})();
