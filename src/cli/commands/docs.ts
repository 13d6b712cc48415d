/** `preamp docs`: the documentation that ships with the program. */
import { BUILTIN_IDS } from "../../app/builtins.ts";
import { createModuleTable } from "../../app/module_table.ts";
import { pageIndex, PAGES, readPage } from "../../docs/pages.ts";
import { didYouMean } from "../../sdk/did_you_mean.ts";
import { type Arguments, UsageError } from "../arguments.ts";
import type { Command } from "../command.ts";
import { EXIT } from "../errors.ts";
import type { Io } from "../terminal/io.ts";

/** The command. */
export const command: Command = {
  usage: "docs [page]",
  summary: "Prints a page of the documentation as Markdown; without a name, the index.",
  flags: [],
  run,
};

async function run(args: Arguments, io: Io): Promise<number> {
  const [name, extra] = args.rest;
  if (extra !== undefined) throw new UsageError("Cannot print more than one page at a time");
  io.out.write(name === undefined ? await index() : await page(name));
  return EXIT.done;
}

async function index(): Promise<string> {
  const { ids, listing } = createModuleTable();
  const modules = await Promise.all([...ids].map(listing));
  return pageIndex(
    modules.map(({ id, description }) => ({ name: id, summary: description })),
    (name) => `preamp docs ${name}`,
  );
}

async function page(name: string): Promise<string> {
  const text = await readPage(name);
  if (text !== undefined) return text;
  const names = new Set([...PAGES.map((page) => page.name), ...BUILTIN_IDS]);
  const meant = didYouMean(name, names);
  throw new UsageError(
    `Cannot find page ${JSON.stringify(name)}: ${
      meant === undefined ? "preamp docs lists all pages" : `did you mean "${meant}"?`
    }`,
  );
}
