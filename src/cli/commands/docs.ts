/** `preamp docs`: the documentation that ships with the program. */
import { BUILTIN_IDS } from "../../app/module_table.ts";
import { linkedPage, pageIndex, PAGES, readPage, UNREADABLE } from "../../docs/pages.ts";
import { adviceFor, UsageError } from "../arguments.ts";
import type { Command } from "../commands.ts";
import { fitMarkdown } from "../terminal/markdown.ts";
import { builtInModules } from "./module/list.ts";

export const command: Command = {
  usage: "docs [page]",
  summary: "Prints a page of the documentation as Markdown; without a name, the index.",
  flags: [],
  details: () =>
    `Each built-in module has a page under its id. On a terminal, lines and tables fit its width.

  preamp docs plan
  preamp docs tool-calculator
`,
  max_arguments: 1,
  async run({ rest: [name] }, { out }) {
    const text = name === undefined ? await index() : await page(name);
    return { text: out.terminal ? fitMarkdown(withCommands(text), out.columns()) : text };
  },
};

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
  const names = new Set([...PAGES.map((page) => page.name), ...BUILTIN_IDS]);
  const advice = names.has(name) ? UNREADABLE : adviceFor(name, names, "preamp docs lists all pages");
  throw new UsageError(`Cannot find page ${JSON.stringify(name)}: ${advice}`);
}
