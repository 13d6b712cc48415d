/// <reference lib="dom" />
/** The script of the documentation: search, copy buttons and the mark of the current section. */
import { type Piece, search, type SearchResult, type SearchSection } from "../../../../docs/search.ts";

/** Milliseconds for which a copy button says what it did. */
const COPIED_MS = 1_500;
/** Pixels below the top of the window at which a section begins to be the current one. */
const CURRENT_PX = 80;

/** Where the page keeps light or dark for a tab, if its reader chose one. */
const THEME = "preamp.theme";

const theme = sessionStorage.getItem(THEME);
if (theme !== null) document.documentElement.dataset.theme = theme;

const form = document.querySelector<HTMLFormElement>("form[role=search]");
if (form) startSearch(form);
addCopyButtons();
markCurrentSection();
scrollByKeyboard();
addEventListener("resize", scrollByKeyboard);
openBesideText(".pages", "(min-width: 860px)");
openBesideText(".contents", "(min-width: 1120px)");

function startSearch(form: HTMLFormElement): void {
  const input = form.querySelector("input")!;
  const list = form.querySelector<HTMLElement>("#results")!;
  const status = form.querySelector(".status")!;
  const folder = form.dataset.folder ?? "";
  let index: Promise<readonly SearchSection[]> | undefined;
  let selected = 0;
  const options = () => [...list.querySelectorAll<HTMLAnchorElement>("a")];

  const select = (place: number) => {
    const all = options();
    selected = all.length === 0 ? 0 : (place + all.length) % all.length;
    for (const [at, option] of all.entries()) option.ariaSelected = String(at === selected);
    const option = all[selected];
    if (!option) return input.removeAttribute("aria-activedescendant");
    input.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  };
  const show = (...children: readonly Node[]) => {
    list.replaceChildren(...children);
    list.hidden = children.length === 0;
    input.ariaExpanded = String(!list.hidden);
    select(0);
  };
  const update = async () => {
    const query = input.value;
    if (query.trim() === "") return show();
    try {
      index ??= fetch(`${folder}search.json`).then((answer) =>
        answer.ok ? answer.json() : Promise.reject(answer)
      );
      const results = search(await index, query);
      if (query !== input.value) return; // a later key has its own update
      show(
        ...results.length > 0 ? results.map(optionOf) : [noteOf("No section has all of these words.")],
      );
      status.textContent = `${results.length} results`;
    } catch {
      index = undefined;
      show(noteOf("The search index cannot be loaded: is the server still there?"));
    }
  };
  const optionOf = ({ section, heading, excerpt }: SearchResult, place: number) => {
    const { page, anchor, title } = section;
    const option = element("a", ...page === title.toLowerCase() && anchor === "" ? [] : [`${page} › `]);
    option.append(...heading.map(nodeOf));
    const text = element("small");
    text.append(...excerpt.map(nodeOf));
    option.append(text);
    option.href = `${folder}${page}${anchor === "" ? "" : `#${anchor}`}`;
    option.id = `result${place}`;
    option.role = "option";
    option.tabIndex = -1;
    return option;
  };

  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("focusout", ({ relatedTarget }) => {
    if (!form.contains(relatedTarget as Node | null)) show();
  });
  list.addEventListener("mousedown", (event) => event.preventDefault()); // the input keeps the focus until the click
  list.addEventListener("click", () => show());
  input.addEventListener("input", update);
  input.addEventListener("focus", update);
  input.addEventListener("keydown", (event) => {
    const { key } = event;
    if (key === "ArrowDown" || key === "ArrowUp") select(selected + (key === "ArrowDown" ? 1 : -1));
    else if (key === "Enter") options()[selected]?.click();
    else if (key === "Escape") {
      if (list.hidden) input.blur();
      show();
    } else return;
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    const { key, ctrlKey, metaKey, altKey, target } = event;
    const typing = target instanceof HTMLInputElement;
    const asked = key === "/" && !typing && !ctrlKey && !metaKey && !altKey ||
      key === "k" && (ctrlKey || metaKey);
    if (!asked) return;
    event.preventDefault();
    input.focus();
    input.select();
  });
}

function addCopyButtons(): void {
  if (!navigator.clipboard) return; // a page of another machine without TLS
  for (const block of document.querySelectorAll(".code")) {
    const button = element("button", "Copy");
    button.type = "button";
    button.className = "copy";
    button.addEventListener("click", async () => {
      const copied = await navigator.clipboard.writeText(block.querySelector("code")?.textContent ?? "")
        .then(() => true, () => false);
      button.textContent = copied ? "Copied" : "Not allowed";
      setTimeout(() => button.textContent = "Copy", COPIED_MS);
    });
    block.append(button);
  }
}

/** Marks the link of the section at the top of the window in the contents. */
function markCurrentSection(): void {
  const links = [...document.querySelectorAll<HTMLAnchorElement>(".contents a")];
  const sections = links.map((link) => document.getElementById(decodeURIComponent(link.hash.slice(1))));
  if (links.length === 0) return;
  let current: HTMLAnchorElement | undefined;
  let planned = false;
  const mark = () => {
    planned = false;
    const passed =
      sections.filter((section) => section && section.getBoundingClientRect().top <= CURRENT_PX).length;
    const { scrollHeight, clientHeight, scrollTop } = document.documentElement;
    const at_end = scrollTop > 0 && scrollTop + clientHeight >= scrollHeight - 2;
    const next = links[at_end ? links.length - 1 : passed - 1];
    if (next === current) return;
    current?.removeAttribute("aria-current");
    next?.setAttribute("aria-current", "true");
    next?.scrollIntoView({ block: "nearest" });
    current = next;
  };
  document.addEventListener("scroll", () => {
    if (!planned) requestAnimationFrame(mark);
    planned = true;
  }, { passive: true });
  mark();
}

/** Lets the keyboard reach code and tables that are wider than the text. */
function scrollByKeyboard(): void {
  for (const block of document.querySelectorAll<HTMLElement>("pre, .table")) {
    if (block.scrollWidth <= block.clientWidth || block.tabIndex === 0) continue;
    block.tabIndex = 0;
    block.role = "group";
    block.ariaLabel = block.className === "table" ? "Table" : "Code";
  }
}

/** Opens a disclosure where the style sheet shows it as a column, for programs that read the page aloud. */
function openBesideText(selector: string, query: string): void {
  const details = document.querySelector<HTMLDetailsElement>(`${selector} details`);
  const wide = matchMedia(query);
  const follow = () => details?.toggleAttribute("open", wide.matches);
  wide.addEventListener("change", follow);
  follow();
}

function element<Name extends "a" | "button" | "p" | "small">(
  name: Name,
  ...texts: readonly string[]
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  made.append(...texts);
  return made;
}

/** Returns a line of the results that cannot be chosen. */
function noteOf(text: string): Node {
  const note = element("p", text);
  note.role = "option";
  note.ariaDisabled = "true";
  return note;
}

function nodeOf({ text, match }: Piece): Node {
  if (!match) return document.createTextNode(text);
  const mark = document.createElement("mark");
  mark.append(text);
  return mark;
}
