/**
 * What must hold after any test of the program, whatever the test was about: every run that has ended replays
 * as it was recorded, and every line of the log is JSON of at most 16 KiB.
 */
import { assert, assertEquals } from "../assert.ts";
import type { Ended, Json, ServerProgram } from "./program.ts";

/** Reasons for which a run cannot be replayed: nothing of its turn, or not enough of it, is in the log. */
const NOT_REPLAYABLE =
  /its session was never initialised|it has no turn|its modules could not be mounted again|does not put the response/;

const MAX_LINE_BYTES = 16 * 1024;

/** Replays every run of a server that has ended; of a server that is gone, or takes another key, none. */
export async function assertRunsReplay(server: Pick<ServerProgram, "get" | "post" | "ended">): Promise<void> {
  let over = false;
  server.ended.then(() => over = true, () => over = true);
  const asked = async (act: () => Promise<{ status: number; body: Json }>) => {
    try {
      return await act();
    } catch (error) {
      if (over || error instanceof TypeError) return null; // the test ended the server
      throw error;
    }
  };
  const listed = await asked(() => server.get("/v1/runs?limit=1000"));
  if (listed?.status !== 200) return;
  for (const { id, ended_at } of listed.body.data) {
    if (ended_at === null) continue;
    const replayed = await asked(() => server.post(`/v1/runs/${id}/replay`, {}));
    if (replayed === null) return;
    assertReplay(id, replayed.status, replayed.body);
  }
}

/** Asserts what the replay of a run came to. */
function assertReplay(id: string, status: number, body: Json): void {
  if (status === 409 && NOT_REPLAYABLE.test(body.error.message)) return;
  assertEquals([id, status, body], [id, 200, { equal: true }]);
}

/** What Deno before 2.9 prints by itself when a hostile guest leaves an error uncaught. */
const GUEST_UNCAUGHT =
  /^.{0,20}error.{0,10}: .{0,20}Uncaught \(in worker "guest"\)[^\n]*\n(?: {4}[^\n]*\n)*/gm;

/** Asserts that a log on stderr is lines of JSON, none of them too long. */
export function assertLinesAreJson(stderr: string): void {
  for (const line of stderr.replace(GUEST_UNCAUGHT, "").split("\n").slice(0, -1)) {
    assert(new TextEncoder().encode(line).length < MAX_LINE_BYTES, `a line of the log is too long: ${line}`);
    try {
      JSON.parse(line);
    } catch {
      throw new Error(`a line of the log is not JSON: ${line}`);
    }
  }
}

/** Result of a command. */
export type Result = Pick<Ended, "code" | "stdout" | "stderr">;

/**
 * Replays a run of `preamp run`: one that was saved, else the same command's once more, saved.
 *
 * @param run Runs the program again, with the same input or another one; may do so in this process, which
 * needs no start.
 */
export async function assertCommandReplays(
  args: readonly string[],
  { code, stdout }: Result,
  run: (args: readonly string[], stdin?: string) => Promise<Result>,
): Promise<void> {
  if (args[0] !== "run" || code > 1 || args.includes("-h") || args.includes("--help")) return;
  const is_saved = args.join(" ").includes("json-trace");
  const saved = is_saved ? stdout : (await run([...args, "--output-format", "json-trace"])).stdout;
  if (saved === "") return; // there was no run
  const replayed = await run(["replay", "--json", "-"], saved);
  if (NOT_REPLAYABLE.test(replayed.stderr)) return;
  assertEquals([args, replayed.code, replayed.stdout.trim()], [args, 0, '{"equal":true}'], replayed.stderr);
}
