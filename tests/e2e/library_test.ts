/**
 * The library in an application of its own: in another folder, and as a registry serves it. Always from
 * source.
 */
import { assert, assertEquals, assertStringIncludes } from "../assert.ts";
import { temporaryFolder } from "../support/folder.ts";
import { servePackage } from "./package_server.ts";
import { readPage } from "./page.ts";
import { ROOT, startServer } from "./program.ts";

const PAGE = await readPage("src/docs/library.md");

const APPLICATION = `
import { Hono } from "hono";
import { defineTool, z } from "preamp";
import { createPreamp } from "preamp/server";

const greet = defineTool({
  name: "greet",
  description: "Greets someone.",
  input: z.object({ name: z.string() }),
  execute: ({ name }) => \`Hello, \${name}!\`,
});

await using preamp = createPreamp({
  authenticate: null,
  basePath: "/agents",
  plans: new URL("./plans/", import.meta.url),
  modules: { "tool-greet": (coordinator) => coordinator.mount("tools", greet) },
});
const app = new Hono().mount("/agents", preamp.fetch);

async function run(body: unknown) {
  const headers = { "content-type": "application/json" };
  const response = await app.request("/agents/v1/runs", { method: "POST", headers, body: JSON.stringify(body) });
  return await response.json();
}

const calls = [{ name: "greet", arguments: { name: "Ada" } }];
const own = await run({
  prompt: "?",
  plan: {
    session: { orchestrator: "loop-basic", context: "context-simple" },
    providers: [{ module: "provider-mock", config: { responses: [{ tool_calls: calls }, { text: "Greeted." }] } }],
    tools: ["tool-greet"],
  },
});
const shouted = await run({ prompt: "?", plan_ref: "shout" });
const failed = await run({ prompt: "?", plan_ref: "broken" });
const page = await app.request("/agents/", { headers: { accept: "text/html" } });
console.log(JSON.stringify([
  [own.status, own.output_text, own.isolation],
  [shouted.status, shouted.output_text, shouted.isolation, shouted.warnings],
  failed.error?.code ?? failed,
  [page.status, (await page.text()).includes('src="page/')],
]));
`;

const PLAN = `
session: { orchestrator: loop-streaming, context: context-simple }
providers:
  - module: provider-mock
    config: { responses: [{ tool_calls: [{ name: shout, arguments: { text: hello } }] }, { text: Shouted. }] }
tools: [{ module: tool-shout, source: ./shout.ts }]
`;

const TOOL = `
import { type Coordinator, defineTool, z } from "preamp";

const shout = defineTool({
  name: "shout",
  description: "Says it louder.",
  input: z.object({ text: z.string() }),
  execute: ({ text }) => \`\${text.toUpperCase()}!\`,
});

export async function mount(coordinator: Coordinator): Promise<void> {
  await coordinator.mount("tools", shout);
}
`;

/** What the application prints: its own module runs inline, the one beside its plan in a sandbox. */
const expected = (has_page: boolean) => [
  ["completed", "Greeted.", {
    "loop-basic": "inline",
    "context-simple": "inline",
    "provider-mock": "inline",
    "tool-greet": "inline",
  }],
  ["completed", "Shouted.", {
    "loop-streaming": "inline",
    "context-simple": "inline",
    "provider-mock": "inline",
    "tool-shout": "process",
  }, []],
  "not_found",
  [200, has_page],
];

/** Runs the application in a folder of its own; `config` is its deno.json. */
async function runApplication(
  { imports, ...rest }: { imports: Record<string, string>; links?: string[] },
  { has_page, ...env }: { has_page: boolean; JSR_URL?: string; DENO_DIR?: string },
): Promise<void> {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  const { imports: { hono } } = JSON.parse(await Deno.readTextFile(`${ROOT}deno.json`));
  const config = { ...rest, imports: { ...imports, hono } };
  await Deno.mkdir(`${folder}/plans`);
  await Deno.writeTextFile(`${folder}/deno.json`, JSON.stringify(config));
  await Deno.writeTextFile(`${folder}/app.ts`, APPLICATION);
  await Deno.writeTextFile(`${folder}/plans/shout.yaml`, PLAN);
  await Deno.writeTextFile(`${folder}/plans/shout.ts`, TOOL);
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "--no-prompt", "--no-lock", "-A", "app.ts"],
    cwd: folder,
    env,
  }).output();
  const printed = new TextDecoder().decode(stdout);
  assertEquals([code, new TextDecoder().decode(stderr)], [0, ""]);
  assertEquals(JSON.parse(printed), expected(has_page));
}

Deno.test("the library works in another folder, with the deno.json of src/docs/library.md", async () => {
  const { links, imports } = documentedConfig();
  assertEquals(links, ["../preamp"]);
  await runApplication({ links: [ROOT], imports }, { has_page: true });
});

Deno.test("the library works as a registry serves it, with sandboxes for modules", async () => {
  await using registry = await servePackage();
  await using temporary = await temporaryFolder();
  const cache = temporary.path;
  // a cache of its own for what comes from here, and the packages that this project has
  await Deno.symlink(await packagesFolder(), `${cache}/npm`);
  const { imports } = documentedConfig();
  await runApplication({ imports }, { has_page: false, JSR_URL: registry.url, DENO_DIR: cache });
});

Deno.test("src/docs/library.md shows programs that print what their comments say", async () => {
  const programs = PAGE.blocks("ts");
  assertEquals(programs.length, 2);
  for (const program of programs) assertEquals(await printed(program), commented(program));
});

Deno.test("src/docs/library.md shows a client that streams a run and answers its approval, in Deno and Node", async () => {
  await using server = await startServer();
  const [program = ""] = PAGE.blocks("js ignore");
  const here = `globalThis.confirm = () => true;\n${program}`.replace("http://127.0.0.1:8484", server.url)
    .replace("pk_…", server.key);
  assertEquals(await printed(here), commented(program));
  if (!await isInstalled("node")) return;
  await using temporary = await temporaryFolder();
  const { path } = temporary;
  await outputOf(Deno.execPath(), ["run", "-A", `${ROOT}.tasks/release.ts`, `${path}/node_modules/preamp`]);
  await Deno.writeTextFile(`${path}/app.mjs`, here);
  assertEquals(await outputOf("node", [`${path}/app.mjs`]), commented(program));
});

/** Resolves to what a program prints that has the import map of this project. */
async function printed(program: string): Promise<string> {
  await using temporary = await temporaryFolder();
  const file = `${temporary.path}/app.ts`;
  await Deno.writeTextFile(file, program);
  return await outputOf(Deno.execPath(), ["run", "--no-check", "-A", `--config=${ROOT}deno.json`, file]);
}

/** Resolves to the stdout of a command. */
async function outputOf(command: string, args: readonly string[]): Promise<string> {
  const { stdout } = await new Deno.Command(command, { args: [...args], stderr: "inherit" }).output();
  return new TextDecoder().decode(stdout);
}

function isInstalled(command: string): Promise<boolean> {
  return new Deno.Command(command, { args: ["--version"], stdout: "null" }).output()
    .then(() => true, () => false);
}

/** Returns what a program prints, as the comments behind `console.log()` say. */
function commented(program: string): string {
  const lines = [...program.matchAll(/console\.log\(.*\); \/\/ (.*)/g)].map(([, line]) => `${line}\n`);
  assert(lines.length > 0);
  return lines.join("");
}

Deno.test("the package holds every file that its exports name, and no test", async () => {
  const { exports, publish: { include } } = JSON.parse(await Deno.readTextFile(`${ROOT}deno.json`));
  for (const path of Object.values<string>(exports)) {
    const [folder = ""] = path.slice("./".length).split("/");
    assertEquals([path, include.includes(folder)], [path, true]);
  }
  assertEquals(include.filter((path: string) => path.startsWith("tests")), []);
});

/** Returns the deno.json that the page shows. */
function documentedConfig(): { links: string[]; imports: Record<string, string> } {
  return JSON.parse(PAGE.blocks("json")[0] ?? "");
}

async function packagesFolder(): Promise<string> {
  const { stdout } = await new Deno.Command(Deno.execPath(), { args: ["info", "--json"] }).output();
  const { npmCache } = JSON.parse(new TextDecoder().decode(stdout)) as { npmCache: string };
  assertStringIncludes(npmCache, "npm");
  return npmCache;
}
