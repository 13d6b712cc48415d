/**
 * Measures the compiled program with a tool from a file in the process tier: a command, and requests to a
 * server.
 */
import { median, timed } from "../figures.ts";
import { startServer } from "../processes.ts";

/** Milliseconds with a built-in tool and with a tool from a file. */
export interface ProgramFigures {
  /** `preamp run`, from start to end. */
  readonly run: { readonly built_in_ms: number; readonly file_ms: number };
  /** `POST /v1/runs` to `preamp serve`: the first request and the later ones. */
  readonly serve: { readonly first_ms: number; readonly built_in_ms: number; readonly file_ms: number };
}

/** Pause between requests in ms, in which the server prepares child processes. */
const PAUSE_MS = 1_000;

/** Measures an executable. */
export async function measureProgram(program: string, rounds: number): Promise<ProgramFigures> {
  const folder = await Deno.makeTempDir();
  try {
    const tool = await Deno.readTextFile(new URL("../modules/tool_echo.ts", import.meta.url));
    await Deno.mkdir(`${folder}/plans`);
    await Deno.writeTextFile(`${folder}/plans/tool_echo.ts`, tool);
    await Deno.writeTextFile(`${folder}/plans/file.yaml`, planOf("echo", { text: "hello" }, FILE_TOOL));
    await Deno.writeTextFile(
      `${folder}/plans/built-in.yaml`,
      planOf("calculator", { expression: "6*7" }, "tool-calculator"),
    );
    return {
      run: await measureRun(program, folder, rounds),
      serve: await measureServe(program, folder, rounds),
    };
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

const FILE_TOOL = { module: "tool-echo", source: "./tool_echo.ts" };

/** Returns a plan as JSON, which is also YAML. */
function planOf(name: string, input: Record<string, string>, tool: unknown): string {
  const responses = [{ tool_calls: [{ name, arguments: input }] }, { text: "Done." }];
  return JSON.stringify({
    session: { orchestrator: "loop-basic", context: "context-simple" },
    providers: [{ module: "provider-mock", config: { responses } }],
    tools: [tool],
  });
}

async function measureRun(program: string, folder: string, rounds: number): Promise<ProgramFigures["run"]> {
  const [built_in, file]: [number[], number[]] = [[], []];
  for (let round = -1; round < rounds; round++) {
    for (const [plan, times] of [["built-in", built_in], ["file", file]] as const) {
      const ms = await timed(async () => {
        const { code, stderr } = await new Deno.Command(program, {
          args: ["run", "-p", `plans/${plan}.yaml`, "hello"],
          cwd: folder,
          env: { PREAMP_HOME: `${folder}/home`, NO_COLOR: "1" },
          stdin: "null",
        }).output();
        if (code !== 0) {
          throw new Error(`Cannot measure: the run must complete: ${new TextDecoder().decode(stderr)}`);
        }
      });
      if (round >= 0) times.push(ms);
    }
  }
  return { built_in_ms: median(built_in), file_ms: median(file) };
}

async function measureServe(
  program: string,
  folder: string,
  rounds: number,
): Promise<ProgramFigures["serve"]> {
  await using server = await startServer({
    command: program,
    args: ["serve", "--port", "0", "--store", "memory", "--no-auth", "--plans", `${folder}/plans`],
    env: { PREAMP_HOME: `${folder}/home-of-server`, NO_COLOR: "1" },
  });
  const first_ms = await timed(() => post(server.url, "file"));
  const [built_in, file]: [number[], number[]] = [[], []];
  for (let round = -1; round < rounds; round++) {
    for (const [plan, times] of [["built-in", built_in], ["file", file]] as const) {
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      const ms = await timed(() => post(server.url, plan));
      if (round >= 0) times.push(ms);
    }
  }
  return { first_ms, built_in_ms: median(built_in), file_ms: median(file) };
}

async function post(url: string, plan: string): Promise<void> {
  const response = await fetch(`${url}/v1/runs`, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify({ prompt: "hello", plan_ref: plan }),
  });
  const text = await response.text();
  if (response.ok && JSON.parse(text).tool_call_count === 1) return;
  throw new Error(`Cannot measure: the run must call its tool: received ${response.status} ${text}`);
}
