// Makes the tables of the page interactive: they can be sorted, filtered, transposed, copied as
// Markdown or TSV, and shown relative to another base.
import { button, changeData, part } from "./charts/figure.js";
import { pageData, signed } from "./charts/look.js";
import { isOpen, ratioOf } from "./ratio.js";

/** Adds sorting, tools and the current filter to the tables in a part of the page. */
export function tablesOf(root) {
  for (const table of root.querySelectorAll("table")) {
    sortable(table);
    if (table.tBodies[0] && table.tBodies[0].rows.length > 1) { tools(table); }
    filtered(table);
  }
}

/** Applies the current filter to a table. At first there is no filter. */
let filtered = () => {};

/**
 * Copies the meanings of columns to tables with the same title, because only the first of them has
 * meanings in the file.
 */
export function meanings() {
  const name = (head) => (head.closest("table").caption || {}).textContent + "|" + head.textContent;
  const find = ({ target }) => {
    const head = target.closest && target.closest("thead th:not([title])");
    if (!head) { return; }
    const first = [...document.querySelectorAll("thead th[title]")].find((other) => name(other) === name(head));
    head.title = first ? first.title : "";
  };
  document.addEventListener("pointerover", find);
  document.addEventListener("focusin", find);
}

/**
 * Returns a cell's number from `data-v`, or otherwise from the beginning of its text. It is `null`
 * for words.
 */
function number(cell) {
  if (cell.dataset.v) { return Number(cell.dataset.v); }
  const found = /^\s*[<>≥≤×]?\s*([-+−]?[\d,]*\.?\d+(?:e[-+]?\d+)?)(?![\w.-])/i.exec(textOf(cell));
  return found ? Number(found[1].replace(/,/g, "").replace("−", "-")) : null;
}

function sortable(table) {
  const head = table.tHead && table.tHead.rows[table.tHead.rows.length - 1];
  if (!head || !table.tBodies[0] || table.tBodies[0].rows.length < 2) { return; }
  for (const cell of head.cells) {
    if (cell.querySelector("a, button") || cell.colSpan > 1) { continue; }
    const sort = button("", "", () => {
      const ascending = cell.getAttribute("aria-sort") === "descending";
      for (const other of head.cells) { other.removeAttribute("aria-sort"); }
      cell.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      sortRows(table, cell.cellIndex, ascending ? 1 : -1);
    });
    sort.append(...cell.childNodes);
    cell.append(sort);
  }
}

function sortRows(table, column, direction) {
  const body = table.tBodies[0], rows = [...body.rows];
  const values = new Map(rows.map((row) => [row, row.cells[column] ? [number(row.cells[column]), row.cells[column].textContent] : [null, ""]]));
  rows.sort((one, other) => {
    const [a, aText] = values.get(one), [b, bText] = values.get(other);
    if (a === null || b === null) { return (a === null) - (b === null) || (a === null ? direction * aText.localeCompare(bText) : 0); }
    return direction * (a - b);
  });
  body.append(...rows);
}

/** Text of a cell on one line, without drawings and scripts. */
function textOf(cell) {
  const copy = cell.cloneNode(true);
  copy.querySelectorAll("svg, script").forEach((inner) => inner.remove());
  copy.querySelectorAll("small").forEach((inner) => inner.prepend(" "));
  return copy.textContent.replace(/\s+/g, " ").trim();
}

/** Returns the texts of the cells that are not hidden. */
export function shownCells(table) {
  return [...table.rows].filter((row) => !row.hidden).map((row) => [...row.cells].filter((cell) => !cell.hidden).map(textOf));
}

export function markdown(cells) {
  const line = (row) => "| " + row.map((text) => text.replace(/\|/g, "\\|")).join(" | ") + " |";
  const [head, ...rows] = cells;
  return [line(head), "|" + head.map((_, column) => column ? "---:" : "---").join("|") + "|", ...rows.map(line)].join("\n") + "\n";
}

export function tsv(cells) {
  return cells.map((row) => row.join("\t")).join("\n") + "\n";
}

function tools(table) {
  const bar = part("div", "table-tools");
  const copied = part("span");
  copied.setAttribute("role", "status");
  const copy = (name, form) => button(name, `Copy the table as ${name}`, async () => {
    await write(form(shownCells(table)));
    copied.textContent = "copied";
    setTimeout(() => { copied.textContent = ""; }, 2000);
  });
  bar.append(button("⇄", "Exchange rows and columns", () => transpose(table)), copy("Markdown", markdown), copy("TSV", tsv), copied);
  (table.closest(".scroll") || table).after(bar);
}

/** Writes to the clipboard. A page in a file may not be allowed to, and then copies a selection. */
async function write(text) {
  try { await navigator.clipboard.writeText(text); } catch {
    const area = part("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

/** Turns rows into columns. Cells are moved, so that they keep their colours, notes and links. */
function transpose(table) {
  const rows = [...table.rows].map((row) => [...row.cells]);
  const width = Math.max(...rows.map((row) => row.length));
  if (rows.some((row) => row.some((cell) => cell.colSpan > 1))) { return; }
  const turned = Array.from({ length: width }, (_, column) => rows.map((row) => row[column]));
  const line = (cells, isHead) => {
    const row = part("tr");
    row.append(...cells.filter(Boolean).map((cell, at) => as(cell, isHead || at === 0 ? "th" : "td", isHead ? "col" : "row")));
    return row;
  };
  const body = part("tbody"), head = part("thead");
  head.append(line(turned[0], true));
  body.append(...turned.slice(1).map((cells) => line(cells, false)));
  table.replaceChildren(...[table.caption, head, body].filter(Boolean));
  table.classList.toggle("turned");
  sortable(table);
}

function as(cell, name, scope) {
  const made = part(name);
  const inner = cell.querySelector(":scope > button");
  made.append(...(inner ? inner : cell).childNodes);
  for (const { name: attribute, value } of cell.attributes) {
    if (!["scope", "aria-sort"].includes(attribute)) { made.setAttribute(attribute, value); }
  }
  if (name === "th") { made.scope = scope; }
  return made;
}

/** Adds fields that filter by a text in the step's name, by group and by variant. */
export function filters(page) {
  const data = pageData(), nav = page.querySelector("nav");
  if (!data || !data.steps) { return filterRows(page); }
  const form = part("form"), text = part("input"), groups = [...new Set(data.steps.flatMap((step) => step.groups))];
  form.id = "filters";
  form.setAttribute("aria-label", "Filter tables and sections");
  form.addEventListener("submit", (event) => event.preventDefault());
  text.type = "search";
  form.append(labelled("Step", text));
  const group = part("select");
  if (groups.length > 1) {
    group.append(new Option("all", ""), ...groups.map((name) => new Option(name, name)));
    form.append(labelled("Group", group));
  }
  const boxes = data.variants.map((name) => {
    const box = part("input");
    box.type = "checkbox";
    box.checked = true;
    box.value = name;
    return box;
  });
  if (boxes.length > 1) { form.append(...boxes.map((box) => labelled(box.value, box))); }
  if (data.variants.length > 1) {
    const { field, repaint } = coloursField(page, data);
    form.append(baseField(page, data, repaint), field);
  }
  const named = new Map(data.steps.map((step) => [step.name, step]));
  const apply = () => {
    const wanted = text.value.trim().toLowerCase(), off = new Set(boxes.filter((box) => !box.checked).map((box) => box.value));
    const isOut = (step) => !step.name.toLowerCase().includes(wanted) || (group.value && !step.groups.includes(group.value));
    filtered = (table) => filterTable(table, named, isOut, off);
    page.querySelectorAll("main table").forEach(filtered);
    for (const step of data.steps) {
      const section = page.getElementById(step.id)?.closest("section");
      if (section) { section.hidden = isOut(step); }
    }
  };
  form.addEventListener("input", apply);
  (nav || page.querySelector("main section")).before(form);
}

/** Adds a field to pages without steps that filters rows by a text. */
function filterRows(page) {
  const table = page.querySelector("main table");
  if (!table || table.tBodies[0].rows.length < 2) { return; }
  const form = part("form"), text = part("input");
  form.id = "filters";
  form.addEventListener("submit", (event) => event.preventDefault());
  text.type = "search";
  form.append(labelled("Filter", text));
  form.addEventListener("input", () => {
    const wanted = text.value.trim().toLowerCase();
    for (const row of page.querySelectorAll("main tbody tr")) { row.hidden = !row.textContent.toLowerCase().includes(wanted); }
  });
  page.querySelector("main").prepend(form);
}

export function labelled(name, field) {
  const label = part("label");
  if (field.type === "checkbox") { label.append(field, " ", name); } else { label.append(name, " ", field); }
  return label;
}

/** Hides rows of steps and of variants, and columns of variants. */
function filterTable(table, steps, isOut, off) {
  if (!table.tHead || !table.tBodies[0]) { return; }
  const name = (cell) => (cell ? textOf(cell) : "");
  const heads = [...table.tHead.rows[0].cells], columns = heads.map((cell) => name(cell));
  const outColumns = columns.map((column, at) => at > 0 && (off.has(column) || (steps.has(column) && isOut(steps.get(column)))));
  heads.forEach((cell, at) => { cell.hidden = outColumns[at]; });
  for (const row of table.tBodies[0].rows) {
    const labels = [...row.cells].slice(0, 2).map(name), step = labels.find((label) => steps.has(label));
    row.hidden = (step && isOut(steps.get(step))) || labels.some((label) => off.has(label.replace(/ \(.*\)$/, "")));
    [...row.cells].forEach((cell, at) => { cell.hidden = outColumns[at]; });
  }
}

/** The field that chooses the base of relative tables and of charts of ratios. */
function baseField(page, { variants, base, relative, steps, colours }, repaint) {
  const select = part("select"), note = part("span", "facts"), planned = new Map();
  select.append(...variants.map((name) => new Option(name, name)));
  select.selectedIndex = base;
  const byName = new Map(steps.map((step) => [step.name, step]));
  select.addEventListener("change", () => {
    const chosen = select.selectedIndex, isPlanned = chosen === base;
    for (const table of relativeTables(page, relative)) {
      const heads = [...table.tHead.rows[0].cells].map(textOf);
      const signs = { isTime: table.caption.textContent === relative[1], ...SIGNS[colours] };
      for (const row of table.tBodies[0].rows) {
        // Steps are rows, or columns where the table was turned.
        const label = textOf(row.cells[0]);
        [...row.cells].slice(1).forEach((cell, at) => {
          const step = byName.get(label) || byName.get(heads[at + 1]);
          const variant = Math.max(variants.indexOf(heads[at + 1]), variants.indexOf(label));
          if (!step || variant < 0) { return; }
          if (!planned.has(cell)) { planned.set(cell, { innerHTML: cell.innerHTML, className: cell.className, title: cell.title }); }
          if (isPlanned) { Object.assign(cell, planned.get(cell)); } else { rebase(cell, step, variant, chosen, variants, signs); }
        });
      }
    }
    // The saved cells may have been coloured by the other rule.
    if (isPlanned) { repaint(); }
    changeData("ratios", isPlanned ? null : (original) => rebased(original, steps, chosen, variants), (caption) => caption.replace(/Base: .*$/, "Base: " + variants[chosen]));
    note.textContent = isPlanned ? "" : " Relative rates only, without verdicts; `dbdyno report --base` has all.";
  });
  const label = labelled("Base", select);
  label.append(note);
  return label;
}

function relativeTables(page, relative) {
  return [...page.querySelectorAll("main table")].filter((table) => table.caption && relative.includes(table.caption.textContent));
}

/** Class and sign of a ratio by its verdict, as in the report. */
const BY_VERDICT = { faster: ["blue", "+"], slower: ["yellow", "−"], missed: ["grey", ""], stalled: ["red", "▼"] };

function byVerdict(cell) {
  return BY_VERDICT[cell.querySelector("small")?.textContent.split(" ").pop()] || ["", ""];
}

/**
 * Class and sign of a ratio by its distance from 1. For times it is the distance of the ratio of
 * their speeds.
 */
function byThreshold(cell, isTime) {
  const ratio = number(cell), percent = Math.round(100 * (isTime ? 1 / ratio : ratio));
  return !ratio || isOpen(textOf(cell).trim()[0], ratio) ? ["", ""] : percent >= 105 ? ["green", "▲"] : percent <= 95 ? ["red", "▼"] : ["grey", ""];
}

/** Adds the mark of an undecided ratio, as in the report. */
function marked(cell, [tone, sign]) {
  const isUndecided = cell.querySelector("small")?.textContent.endsWith("undecided");
  return [tone, isUndecided ? (sign + " ?").trim() : sign];
}

/** The field that chooses the colours of relative tables. At first they are those of the plan. */
function coloursField(page, { relative, colours }) {
  const select = part("select"), planned = new Map();
  select.append(new Option("verdicts", "verdicts"), new Option("5 % above or below", "thresholds"));
  select.value = colours;
  const repaint = () => {
    for (const table of relativeTables(page, relative)) {
      const isTime = table.caption.textContent === relative[1];
      for (const cell of table.querySelectorAll("td")) {
        // Against another base there are no verdicts.
        if (cell.title.startsWith("against ")) { continue; }
        if (!planned.has(cell)) { planned.set(cell, [cell.className, cell.querySelector("i")?.textContent]); }
        const other = select.value === "verdicts" ? byVerdict(cell) : marked(cell, byThreshold(cell, isTime));
        paint(cell, select.value === colours ? planned.get(cell) : other);
      }
    }
  };
  select.addEventListener("change", repaint);
  return { field: labelled("Colours", select), repaint };
}

/** Gives a cell its colour, and its sign after the value with which the cell begins. */
function paint(cell, [tone, sign]) {
  cell.className = tone;
  cell.querySelector("i")?.remove();
  if (!sign) { return; }
  const mark = part("i");
  mark.textContent = sign;
  cell.firstChild.after(mark);
}

/** Class and sign of ratios without verdicts, by the page's rule for colours. */
const SIGNS = {
  verdicts: { better: BY_VERDICT.faster, worse: BY_VERDICT.slower, needsInterval: true },
  thresholds: { better: ["green", "▲"], worse: ["red", "▼"] },
};

function rebase(cell, step, variant, base, variants, { isTime, better, worse, needsInterval }) {
  const found = ratioOf(step.rates[variant], step.rates[base]);
  const [above, below] = isTime ? [worse, better] : [better, worse];
  // Without a verdict, only an interval that leaves out 1, or a bound, shows a difference.
  const isUnsure = needsInterval && found && !found.sign && !(found.low > 1 || (found.high !== null && found.high < 1));
  const isPlain = !found || isUnsure || isOpen(found.sign, found.value);
  cell.title = "against " + variants[base];
  cell.textContent = found ? signed(found.sign, found.value.toFixed(2)) + " " : "n/a";
  paint(cell, isPlain ? ["", ""] : found.value > 1.05 ? above : found.value < 0.95 ? below : ["", ""]);
  if (found && found.low && variant !== base) { const small = part("small"); small.textContent = `${found.low.toFixed(3)}–${found.high.toFixed(3)}`; cell.append(small); }
}

function rebased(data, steps, base, variants) {
  const byId = new Map(steps.map((step) => [step.id, step]));
  const others = variants.map((_, variant) => variant).filter((variant) => variant !== base);
  const points = data.keys.flatMap((key, row) => others.flatMap((variant) => {
    const { rates } = byId.get(key), found = ratioOf(rates[variant], rates[base]);
    return found ? [[row, variant, found.value, found.low, found.high, null, ...(found.sign ? [found.sign] : [])]] : [];
  }));
  return { ...data, base, variants: others, points };
}
