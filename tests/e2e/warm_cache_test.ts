/** A machine whose cache has only what `deno cache main.ts` fetches, and which has no network. */
import { assertEquals, assertStringIncludes } from "../assert.ts";
import { temporaryFolder } from "../support/folder.ts";
import { npmPackages, wholeGraph } from "../static_imports.ts";
import { ROOT } from "./program.ts";

const TOOL = `import { type Coordinator, defineTool, z } from "preamp";

export const module = { id: "tool-plum", name: "Plum", version: "1.0.0", type: "tool", description: "Says plum" };

const plum = defineTool({
  name: "plum",
  description: "Says plum.",
  input: z.object({}),
  execute: () => "plum",
});

export async function mount(coordinator: Coordinator): Promise<void> {
  await coordinator.mount("tools", plum);
}
`;

const PLAN = `session: { orchestrator: loop-streaming, context: context-simple }
providers:
  - module: provider-mock
    config: { responses: [{ tool_calls: [{ name: plum, arguments: {} }] }, { text: Done. }] }
tools: [{ module: tool-plum, source: ./plum.ts }]
`;

/**
 * Commands that load every package but the vendors' clients: bundler, sandboxes, checks of modules,
 * pages.
 */
const COMMANDS: readonly (readonly [args: string[], output: string])[] = [
  [["run", "-p", "plan.yaml", "hello"], "Done."],
  [["module", "validate", "plum.ts"], "tool-plum"],
  [["docs", "plan"], "session"],
];

const ignore = Deno.env.has("PROGRAM_UNDER_TEST"); // the executable has no cache

Deno.test(
  "with the packages of main.ts's graph, and without those of tests, commands and their children need no network",
  { ignore },
  async () => {
    await using cache = await temporaryFolder();
    await using folder = await temporaryFolder();
    const of_tests = await packagesOfTests();
    assertEquals(of_tests.includes("fast-check"), true, of_tests.join());
    for (const { cached_at, path } of await npmPackages("main.ts")) {
      if (of_tests.some((name) => path.includes(`/${name}/`))) continue;
      await copyFolder(cached_at, `${cache.path}/npm/${path}`);
      const name = path.replace(/\/[^/]*$/, ""); // without the version
      await copyFile(
        cached_at.replace(/\/[^/]*$/, "/registry.json"),
        `${cache.path}/npm/${name}/registry.json`,
      );
    }
    await Deno.writeTextFile(`${folder.path}/plum.ts`, TOOL);
    await Deno.writeTextFile(`${folder.path}/plan.yaml`, PLAN);
    for (const [args, output] of COMMANDS) {
      const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
        args: ["run", "--no-prompt", "-A", `${ROOT}main.ts`, ...args],
        cwd: folder.path,
        env: {
          DENO_DIR: cache.path,
          PREAMP_HOME: `${folder.path}/home`,
          NO_COLOR: "1",
          HTTP_PROXY: NOWHERE,
          HTTPS_PROXY: NOWHERE,
        },
      }).output();
      const text = new TextDecoder().decode(stdout);
      assertEquals(code, 0, `preamp ${args.join(" ")}: ${text}${new TextDecoder().decode(stderr)}`);
      assertStringIncludes(text, output);
    }
  },
);

/** Returns the packages of the import map that only tests import. */
async function packagesOfTests(): Promise<string[]> {
  const { imports } = JSON.parse(await Deno.readTextFile(`${ROOT}deno.json`)) as {
    imports: Record<string, string>;
  };
  const graph = (await wholeGraph("main.ts")).join("\n");
  const names = Object.values(imports).map((target) => /^npm:(@?[^@]+)@/.exec(target)?.[1] ?? "");
  return [...new Set(names)].filter((name) => name !== "" && !graph.includes(`npm:/${name}@`));
}

/** A proxy that does not exist. */
const NOWHERE = "http://127.0.0.1:9";

async function copyFolder(from: string, to: string): Promise<void> {
  await Deno.mkdir(to, { recursive: true });
  for await (const { name, isDirectory } of Deno.readDir(from)) {
    if (isDirectory) await copyFolder(`${from}/${name}`, `${to}/${name}`);
    else await copyFile(`${from}/${name}`, `${to}/${name}`);
  }
}

/**
 * A link, because the packages have 200 MB; a copy where the folder of temporary files is on another disk.
 * Versions of a package share a file, which is there then.
 */
async function copyFile(from: string, to: string): Promise<void> {
  await Deno.link(from, to).catch((error) => {
    if (!(error instanceof Deno.errors.AlreadyExists)) return Deno.copyFile(from, to);
  }).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
}
