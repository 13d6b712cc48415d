/** Runs what a user would paste into a shell. */
import { Tail } from "../support/child_process.ts";
import { ROOT } from "./program.ts";

/** Where commands run, and variables they see. */
export interface ShellOptions {
  cwd?: string;
  env?: Record<string, string>;
}

/** Commands that are under way. */
export interface Shell {
  /** What they have written on stdout so far. */
  readonly stdout: Tail;
  /** Resolves to all of it at the end. Rejects with their stderr when the last one fails. */
  readonly ended: Promise<string>;
}

/** Starts what a user would paste; await `ended`. */
export async function startShell(text: string, { cwd, env }: ShellOptions = {}): Promise<Shell> {
  const folder = await Deno.makeTempDir();
  const stand_in =
    `#!/bin/sh\nexec '${Deno.execPath()}' run --allow-net --allow-read '${ROOT}tests/e2e/curl.ts' "$@"\n`;
  await Deno.writeTextFile(`${folder}/curl`, stand_in, { mode: 0o755 });
  const child = new Deno.Command("sh", {
    args: ["-c", text],
    env: { ...env, PATH: `${Deno.env.get("PATH")}:${folder}` },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
    ...(cwd === undefined ? {} : { cwd }),
  }).spawn();
  const stdout = new Tail(child.stdout);
  const stderr = new Tail(child.stderr);
  const ended = Promise.all([child.status, stdout.closed, stderr.closed]).then(([{ success }]) => {
    if (!success) throw new Error(`Cannot run the commands: ${stderr.text}\n${text}`);
    return stdout.text;
  }).finally(() => Deno.remove(folder, { recursive: true }));
  return { stdout, ended };
}

/**
 * Resolves to what the commands wrote on stdout.
 * @throws {Error} with their stderr when the last one fails.
 */
export async function shell(text: string, at: ShellOptions = {}): Promise<string> {
  return await (await startShell(text, at)).ended;
}
