/** Runs what a user would paste into a shell. */
import { ROOT } from "./program.ts";

/**
 * Resolves to what the commands wrote on stdout.
 * @param at where they run, and variables they see.
 * @throws {Error} with their stderr when the last one fails.
 */
export async function shell(
  text: string,
  at: { cwd?: string; env?: Record<string, string> } = {},
): Promise<string> {
  const folder = await Deno.makeTempDir();
  try {
    const stand_in =
      `#!/bin/sh\nexec '${Deno.execPath()}' run --allow-net --allow-read '${ROOT}tests/e2e/curl.ts' "$@"\n`;
    await Deno.writeTextFile(`${folder}/curl`, stand_in, { mode: 0o755 });
    const { success, stdout, stderr } = await new Deno.Command("sh", {
      args: ["-c", text],
      env: { ...at.env, PATH: `${Deno.env.get("PATH")}:${folder}` },
      ...(at.cwd === undefined ? {} : { cwd: at.cwd }),
    }).output();
    const decoder = new TextDecoder();
    if (!success) throw new Error(`Cannot run the commands: ${decoder.decode(stderr)}\n${text}`);
    return decoder.decode(stdout);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
