/**
 * `preamp plan vendor`: a plan whose modules come from a server runs without that server, bundler and child
 * processes.
 */
import { assertEquals, assertMatch, assertStringIncludes } from "../assert.ts";
import { temporaryFolder } from "../support/folder.ts";
import { serveFiles } from "../support/loader.ts";
import { type Json, ROOT, runProgram } from "./program.ts";

/** A tool of two files with an import that is refused. */
const FILES = {
  "shout/mod.ts": `import { z } from "zod";
import { up } from "./up.ts";
const input = z.object({ text: z.string() });
export function mount(coordinator: any) {
  const execute = async (call: unknown) => ({ success: true, output: up(input.parse(call).text) });
  coordinator.mount("tools", { name: "shout", description: "Shouts", input_schema: z.toJSONSchema(input), execute });
}
export const later = (name: string) => import(name);`,
  "shout/up.ts": "export const up = (text: string): string => text.toUpperCase();",
};

const planOf = (url: string) =>
  `# Shouts.
session: { orchestrator: loop-basic, context: context-simple }
system: { file: prompt.md }
providers:
  - module: provider-mock
    config: { responses: [{ tool_calls: [{ name: shout, arguments: { text: hi } }] }, { text: Done. }] }
tools:
  - { module: tool-shout, source: ${url}shout/mod.ts }
agents:
  helper: { description: helps, tools+: [{ module: tool-other, source: ${url}shout/mod.ts }] }
`;

/** Calls `body` with a folder that contains the vendored plan; the server of its modules has ended. */
async function withVendored(body: (folder: string) => Promise<void>): Promise<void> {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  await Deno.writeTextFile(`${folder}/prompt.md`, "Be loud.");
  {
    await using server = serveFiles(FILES);
    await Deno.writeTextFile(`${folder}/plan.yaml`, planOf(server.url));
    const first = await runProgram(["plan", "vendor", "--inline", "plan.yaml"], { cwd: folder });
    assertEquals(first.code, 0, first.stderr);
    assertMatch(
      first.stdout,
      /^written {2}\.\/vendor\/plan\.yaml\n {2}\.\/vendor\/modules\/tool-shout\.js {2}\d+ bytes/,
    );
    assertStringIncludes(first.stdout, "These modules run inside the program");
    assertMatch(first.stderr, /shout\/mod\.ts:8:\d+: a computed import throws when it is executed/);
    const second = await runProgram(["plan", "vendor", "--inline", "-p", "plan.yaml", "--json"], {
      cwd: folder,
    });
    const { status, modules, ...rest } = JSON.parse(second.stdout);
    assertEquals([status, modules.length, rest], ["unchanged", 1, {
      plan: `${await Deno.realPath(folder)}/vendor/plan.yaml`,
      files: ["files/prompt.md"],
    }]);
  }
  await body(`${folder}/vendor`);
}

const RUN = [
  "run",
  "-p",
  "plan.yaml",
  "--output-format",
  "json-trace",
  "hello",
];

function assertShouted(text: string): void {
  const { run, events }: Json = JSON.parse(text);
  assertEquals([run.status, run.isolation["tool-shout"]], ["completed", "inline"]);
  const results = events.filter(({ event }: Json) => event === "tool:post");
  assertEquals(results.map(({ data }: Json) => data.result.output), ["HI"]);
}

Deno.test("a vendored plan runs when the server of its modules is gone, and is locked against changes", () =>
  withVendored(async (cwd) => {
    const { code, stdout, stderr } = await runProgram(RUN, { cwd });
    assertEquals(code, 0, stderr);
    assertShouted(stdout);
    const plan = await Deno.readTextFile(`${cwd}/plan.yaml`);
    assertMatch(plan, /source: \.\/modules\/tool-shout\.js\n\s+integrity: sha256-\S+\n\s+isolation: inline/);
    await Deno.writeTextFile(`${cwd}/modules/tool-shout.js`, "export const mount = () => {};");
    const changed = await runProgram(RUN, { cwd });
    assertEquals(changed.code === 0, false);
    assertStringIncludes(changed.stderr, "the bytes of ./modules/tool-shout.js changed");
  }));

Deno.test("a vendored plan runs without --allow-run, --allow-net and the permission to write", () =>
  withVendored(async (cwd) => {
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: [
        ...["run", "--quiet", "--no-prompt", "--cached-only", "--config", `${ROOT}deno.json`],
        ...["--allow-read", "--allow-env", `${ROOT}main.ts`],
        ...RUN,
      ],
      cwd,
      env: { PREAMP_HOME: `${cwd}/home`, NO_COLOR: "1" },
    }).output();
    assertEquals(code, 0, new TextDecoder().decode(stderr));
    assertShouted(new TextDecoder().decode(stdout));
  }));

Deno.test("plan vendor does not write over the plan itself", async () => {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  await Deno.writeTextFile(`${folder}/plan.yaml`, planOf("https://unused.invalid/"));
  const { code, stderr } = await runProgram(["plan", "vendor", "plan.yaml", "-o", "."], { cwd: folder });
  assertEquals([code, stderr], [
    2,
    "error: Cannot write the vendored plan over the plan itself: name another folder with -o\n" +
    "Try: preamp help plan vendor\n",
  ]);
});
