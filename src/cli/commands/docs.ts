/** `preamp docs`: the documentation that ships with the program. */
import { BUILTIN_IDS } from "../../app/module_table.ts";
import { linkedPage, pageIndex, PAGES, readPage, UNREADABLE } from "../../docs/pages.ts";
import { search } from "../../docs/search.ts";
import { adviceFor, UsageError } from "../arguments.ts";
import type { Command } from "../commands.ts";
import { fitMarkdown } from "../terminal/markdown.ts";
import { builtInModules } from "./module/list.ts";

export const command: Command = {
  usage: "docs [page or words]",
  summary: "Prints a page of the documentation as Markdown, or the sections that answer a question.",
  flags: [],
  details: () =>
    `Without a name it prints the index. Each built-in module has a page under its id. On a terminal, lines and tables
fit its width.

  preamp docs plan
  preamp docs tool-calculator
  preamp docs "keep a tool in a folder"
`,
  max_arguments: 20,
  async run({ rest }, { out }) {
    const [name, ...more] = rest;
    const text = name === undefined ? await index() : more.length > 0 ? await found(rest) : await page(name);
    return { text: out.terminal ? fitMarkdown(withCommands(text), out.columns()) : text };
  },
};

/** Sections that a question finds. */
const MAX_FOUND = 6;

/** Returns the sections that have all of these words, as a list of Markdown; undefined without one. */
async function sectionsWith(words: readonly string[]): Promise<string | undefined> {
  const { searchSections } = await import("../../server/docs/search_index.ts");
  const results = search(await searchSections([...BUILTIN_IDS]), words.join(" "), MAX_FOUND);
  if (results.length === 0) return undefined;
  const asked = results.slice(0, 3).find(({ section }) => section.page === "questions");
  const answer = asked ? await answerTo(asked.section.heading) : "";
  const others = results.filter((result) => answer === "" || result !== asked);
  const list = others.map(({ section: { page, heading, anchor }, excerpt }) => {
    const said = excerpt.map(({ text }) => text).join("");
    return `- ${heading}: \`preamp docs ${page}\`${anchor === "" ? "" : ` (${anchor})`}\n  ${said}`;
  });
  return `${answer}${list.join("\n")}\n`;
}

/** Returns a question of the page of questions with its answer, as it is written there. */
async function answerTo(question: string): Promise<string> {
  const parts = (await readPage("questions"))?.split(/^(?=## )/m) ?? [];
  return parts.find((part) => part.startsWith(`## ${question}\n`)) ?? "";
}

async function found(words: readonly string[]): Promise<string> {
  const text = await sectionsWith(words);
  if (text !== undefined) return text;
  const said = JSON.stringify(words.join(" "));
  throw new UsageError(`Cannot find ${said}: no section has all of these words; preamp docs lists all pages`);
}

async function index(): Promise<string> {
  const modules = (await builtInModules()).map(({ id, description }) => ({ name: id, summary: description }));
  return pageIndex(modules, (name) => `preamp docs ${name}`);
}

/** Returns a page whose links to other pages are the commands that print them, as in the index. */
function withCommands(text: string): string {
  return text.replaceAll(/\]\(([^()\s]+)\)/g, (link, href) => {
    const linked = linkedPage(href);
    return linked ? `](preamp docs ${linked.name})` : link;
  });
}

async function page(name: string): Promise<string> {
  const text = await readPage(name);
  if (text !== undefined) return text;
  const sections = await sectionsWith([name]);
  if (sections !== undefined) return sections;
  const names = new Set([...PAGES.map((page) => page.name), ...BUILTIN_IDS]);
  const advice = names.has(name) ? UNREADABLE : adviceFor(name, names, "preamp docs lists all pages");
  throw new UsageError(`Cannot find page ${JSON.stringify(name)}: ${advice}`);
}
