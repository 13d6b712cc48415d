/**
 * `preamp docs`: the documentation that ships with the program. `preamp module list`: its built-in modules.
 */
import { BUILTIN_IDS, createModuleTable } from "../../app/module_table.ts";
import type { ModuleListing } from "../../app/types.ts";
import { linkedPage, pageIndex, PAGES, readPage } from "../../docs/pages.ts";
import { adviceFor, formatFlags, UsageError } from "../arguments.ts";
import type { Commands } from "../commands.ts";
import { tableText } from "../terminal/format.ts";
import { fitMarkdown } from "../terminal/markdown.ts";

export const commands: Commands = {
  "module list": {
    usage: "module list [flags]",
    summary: "Lists the built-in modules, which plans name without a source.",
    flags: formatFlags({
      help: "a table (default), or {data: [{id, type, version, description, permissions, config_schema}]}",
    }),
    max_arguments: 0,
    async run() {
      const data = await builtins();
      const rows = data.map(({ id, type, version, description }) => [id, type, version, description]);
      return { data: { data }, text: tableText([["id", "type", "version", "description"], ...rows]) };
    },
  },
  docs: {
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
  },
};

async function builtins(): Promise<ModuleListing[]> {
  const { ids, listing } = createModuleTable();
  return await Promise.all([...ids].map(listing));
}

async function index(): Promise<string> {
  const modules = (await builtins()).map(({ id, description }) => ({ name: id, summary: description }));
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
  const advice = adviceFor(name, names, "preamp docs lists all pages");
  throw new UsageError(`Cannot find page ${JSON.stringify(name)}: ${advice}`);
}
