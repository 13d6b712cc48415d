/** Pages of the documentation as a reader uses them: their blocks of code, saved and run. */
import { assert } from "../assert.ts";
import { ROOT } from "./program.ts";

/** A page, or a section of one. */
export interface Page {
  readonly text: string;
  /** Returns the fenced blocks of a language, in order; all of the fence counts, such as `ts ignore`. */
  blocks(language: string): string[];
  /** Returns the first command that contains a text. */
  command(word: string): string;
  /** Returns the part below a heading, up to the next one of the same level. */
  section(heading: string): Page;
}

/** Reads a page by its path from the root. */
export async function readPage(path: string): Promise<Page> {
  return pageOf(await Deno.readTextFile(ROOT + path), path);
}

function pageOf(text: string, name: string): Page {
  const blocks = (language: string) =>
    text.split("```" + language + "\n").slice(1).map((rest) => rest.slice(0, rest.indexOf("```")).trim());
  return {
    text,
    blocks,
    command(word) {
      const found = blocks("sh").flatMap((block) => block.includes("\\\n") ? [block] : block.split("\n"))
        .find((line) => line.includes(word));
      assert(found, `${name} has a command with ${word}`);
      return found;
    },
    section(heading) {
      const [, level = ""] = new RegExp(`^(#+) ${heading}$`, "m").exec(text) ?? [];
      assert(level, `${name} has a section ${heading}`);
      const [, rest = ""] = text.split(`${level} ${heading}\n`);
      const end = rest.search(new RegExp(`^${level} `, "m"));
      return pageOf(end < 0 ? rest : rest.slice(0, end), `${name}, ${heading},`);
    },
  };
}

/** Returns the words behind `preamp` or `deno run -A main.ts` of a command, without its quotes. */
export function argumentsOf(command: string): string[] {
  const rest = command.replace(/^.*?(?:main\.ts|preamp) /, "");
  return [...rest.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? "");
}

/**
 * Puts a `preamp` and this Deno into a folder for `PATH`. Beside the executable Deno starts with nothing: an
 * empty cache, and no network.
 */
export async function programsIn(folder: string): Promise<string> {
  const bin = Deno.env.get("PROGRAM_UNDER_TEST");
  const path = bin === undefined || bin.startsWith("/") ? bin : ROOT + bin;
  const start = path === undefined ? `'${Deno.execPath()}' run -A '${ROOT}main.ts'` : `'${path}'`;
  await Deno.mkdir(`${folder}/bin`);
  await Deno.writeTextFile(`${folder}/bin/preamp`, `#!/bin/sh\nexec ${start} "$@"\n`, {
    mode: 0o755,
  });
  const alone = path === undefined ? "" : `export DENO_DIR='${folder}/deno' HTTPS_PROXY=http://127.0.0.1:9\n`;
  const deno = `#!/bin/sh\n${alone}exec '${Deno.execPath()}' "$@"\n`;
  await Deno.writeTextFile(`${folder}/bin/deno`, deno, { mode: 0o755 });
  return `${folder}/bin`;
}
