// Conveniences only: every number is on the page without this script.
"use strict";
(function () {
  var units = { "µs": 1e-6, "ms": 1e-3, "s": 1 };

  // The number a cell stands for; words sort behind all numbers.
  function amount(text) {
    var found = /^[±<>]?(-?[\d.]+)(?:e([+-]?\d+))?\s*(µs|ms|s)?$/.exec(text.trim());
    if (!found) { return null; }
    var value = parseFloat(found[1] + (found[2] ? "e" + found[2] : ""));
    return found[3] ? value * units[found[3]] : value;
  }

  function sortBy(table, column, ascending) {
    var body = table.tBodies[0];
    var rows = Array.from(body.rows);
    rows.sort(function (a, b) {
      var left = a.cells[column].textContent, right = b.cells[column].textContent;
      var x = amount(left), y = amount(right);
      if (x === null || y === null) {
        if (x !== null) { return -1; }
        if (y !== null) { return 1; }
        return ascending ? left.localeCompare(right) : right.localeCompare(left);
      }
      return ascending ? x - y : y - x;
    });
    rows.forEach(function (row) { body.appendChild(row); });
  }

  function makeSortable(table) {
    var heads = Array.from(table.tHead.rows[0].cells);
    heads.forEach(function (head, column) {
      var button = document.createElement("button");
      button.append.apply(button, Array.from(head.childNodes));
      head.append(button);
      button.addEventListener("click", function () {
        var ascending = head.getAttribute("aria-sort") === "descending";
        heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
        head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
        sortBy(table, column, ascending);
      });
    });
  }

  // Of tables that every step has, the first says what its columns mean.
  var meanings = {};
  document.querySelectorAll("table.sortable").forEach(function (table) {
    Array.from(table.tHead.rows[0].cells).forEach(function (head) {
      var name = table.caption.textContent + "|" + head.textContent;
      if (head.title) { meanings[name] = head.title; } else if (meanings[name]) { head.title = meanings[name]; }
    });
  });

  document.querySelectorAll("table.sortable").forEach(function (table) {
    if (table.tBodies[0].rows.length > 1) { makeSortable(table); }
  });

  function unfold(open) {
    document.querySelectorAll("details").forEach(function (part) { part.open = open; });
  }

  var tools = document.createElement("p");
  tools.className = "tools";
  [["Unfold all evidence", true], ["Fold all", false]].forEach(function (entry) {
    var button = document.createElement("button");
    button.type = "button";
    button.textContent = entry[0];
    button.addEventListener("click", function () { unfold(entry[1]); });
    tools.append(button, " ");
  });
  if (document.querySelector("details")) { document.querySelector("nav").append(tools); }
  window.addEventListener("beforeprint", function () { unfold(true); });
})();
