/**
 * The documentation pages that ship with the program: the Markdown files of this folder, and the README of
 * each built-in module. In the compiled program they lie in a folder `docs` beside the program's code, where
 * the compile task puts them.
 */

/** A page of the documentation. */
export interface Page {
  /** The page's name in `preamp docs NAME` and `/docs/NAME`. */
  readonly name: string;
  /** One line that says what the page is for. */
  readonly summary: string;
}

/** The pages of this folder in reading order. */
export const PAGES: readonly Page[] = [
  {
    name: "quickstart",
    summary: "start: run, chat, a model, the server and its page, a tool, an executable",
  },
  { name: "questions", summary: "find an answer by the question: cost, folders, keys, tests, Amplifier" },
  { name: "chat", summary: "talk with an agent in the terminal: questions, keys, commands, the tour" },
  { name: "recipes", summary: "start from a whole program: files, a chat service, Hono, CI, MCP" },
  { name: "plan", summary: "write a mount plan: every key, sources, `${VAR}`, lock, explain, diff" },
  { name: "amplifier", summary: "use bundles, agents and profiles of Amplifier; old names, new names" },
  { name: "http", summary: "call the API: requests, answers, streams, approvals, error codes" },
  { name: "library", summary: "run agents in your own program, serve the API in it, call a server" },
  { name: "events", summary: "read an event log: every event, its order, resume and replay" },
  { name: "modules", summary: "write, test and publish a module" },
  { name: "context", summary: "tune memory: budgets, compaction, token counting" },
  { name: "security", summary: "know what a plan may touch, what a sandbox enforces, and what it does not" },
  { name: "operating", summary: "run a server: settings, keys, limits, logs, shutdown" },
  { name: "deploy", summary: "deploy an agent: vendored plans, Deno Deploy, containers, systemd" },
  { name: "settings", summary: "look up a setting of `preamp.yaml`" },
  { name: "architecture", summary: "understand the program: folders, the way of one request, the rules" },
  { name: "performance", summary: "know what costs time and memory, and how to measure it" },
  { name: "glossary", summary: "look up a word" },
  { name: "changelog", summary: "see what changed for users" },
];

/** Why a page of {@link PAGES} or of a built-in module is not there. */
export const UNREADABLE = "the program has no files of it, or may not read them: start it with --allow-read";

/**
 * Returns the Markdown of a page, or undefined when there is no page of that name. A program that loads
 * Preamp from a registry, or may not read files, has no pages.
 */
export async function readPage(name: string): Promise<string | undefined> {
  if (!/^[a-z][a-z-]*$/.test(name) || !import.meta.url.startsWith("file:")) return undefined;
  try {
    return await Deno.readTextFile(pageUrl(name));
  } catch (error) {
    const { NotCapable, NotFound } = Deno.errors;
    if (error instanceof NotFound || error instanceof NotCapable) return undefined;
    throw error;
  }
}

function pageUrl(name: string): URL {
  if (Deno.build.standalone) return new URL(`docs/${name}.md`, import.meta.url);
  const own = PAGES.some((page) => page.name === name);
  return new URL(own ? `${name}.md` : `../../modules/${name}/README.md`, import.meta.url);
}

/**
 * Returns the index of all pages as Markdown, in the form of https://llmstxt.org: what `/llms.txt` answers.
 */
export function pageIndex(modules: readonly Page[], link: (name: string) => string): string {
  const list = (pages: readonly Page[]) =>
    pages.map(({ name, summary }) => `- [${name}](${link(name)}): ${summary}`).join("\n");
  return `# Preamp

> An edge runtime for Amplifier-style agent modules: one Deno program. POST a plan and a prompt, get an agent.

## Pages

${list(PAGES)}

## Built-in modules

${list(modules)}
`;
}

/**
 * Returns the name of the page that a link inside a page leads to, or undefined for a link elsewhere. Links
 * are relative to `src/docs` or to the folder of a module.
 */
export function linkedPage(href: string): { name: string; anchor: string } | undefined {
  const [, page, module, anchor = ""] =
    /^(?:(?:\.\/|\.\.\/\.\.\/src\/docs\/)?([a-z-]+)\.md|\.\.\/(?:\.\.\/modules\/)?([a-z-]+)\/README\.md)(#.*)?$/
      .exec(href) ?? [];
  const name = page ?? module;
  return name === undefined ? undefined : { name, anchor };
}
