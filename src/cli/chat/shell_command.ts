/** `!command`: a command that the person runs, whose output the agent reads with the next message. */
import { fenced } from "../prompt_files.ts";
import type { ChatView } from "./view.ts";

/** Characters of the output that the agent reads: the last ones. */
const MAX_READ_CHARS = 16 * 1024;

/** Returns the command of a line such as `!git status`; null: it has no command. */
export function shellCommandOf(line: string): string | null {
  return /^!\s*(\S[^]*)$/.exec(line.trim())?.[1] ?? null;
}

/**
 * Runs a command in a shell, and shows what it writes; resolves to what the agent reads of it. `signal` stops
 * it with all that it has started.
 */
export async function runShellCommand(
  command: string,
  { folder, view, signal }: { folder: URL; view: ChatView; signal: AbortSignal },
): Promise<string> {
  const shown = view.shellCommand(command);
  const child = new Deno.Command("bash", {
    args: ["-c", `exec 2>&1; ${command}`],
    cwd: folder,
    stdin: "null",
    stdout: "piped",
    stderr: "null",
    detached: true, // the leader of a group, so that all can be stopped
  }).spawn();
  const stop = () => {
    try {
      Deno.kill(-child.pid, "SIGKILL");
    } catch { /* it has ended */ }
  };
  signal.addEventListener("abort", stop, { once: true });
  globalThis.addEventListener("unload", stop); // the program exits without its end
  let output = "";
  try {
    for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
      output = (output + text).slice(-4 * MAX_READ_CHARS);
      shown.add(text);
    }
    const { code } = await child.status;
    shown.end(code);
    const left = output.length > MAX_READ_CHARS ? `the last ${MAX_READ_CHARS} characters of ` : "";
    const read = output.slice(-MAX_READ_CHARS);
    return `I ran \`${command}\` (exit code ${code}); ${left}its output:\n\n${fenced(read)}`;
  } finally {
    signal.removeEventListener("abort", stop);
    globalThis.removeEventListener("unload", stop);
  }
}
