/**
 * Reads facts of a process with standard Linux commands: Deno allows `/proc` only with all permissions.
 * Knows no server and no guest.
 */

/** Returns the bytes of memory a process has resident; undefined when it is gone. */
export async function residentBytes(pid: number): Promise<number | undefined> {
  const text = await outputOf("cat", `/proc/${pid}/statm`);
  const pages = Number(text?.split(" ")[1]);
  return Number.isFinite(pages) ? pages * PAGE_BYTES : undefined;
}

const PAGE_BYTES = 4096;

/** Returns what the open descriptors of a process are, sorted: `socket:[…]`, `/path`, `pipe:[…]`. */
export async function descriptorsOf(pid: number): Promise<string[]> {
  const text = await outputOf("find", `/proc/${pid}/fd`, "-mindepth", "1", "-printf", "%l\n") ?? "";
  return text.split("\n").filter((line) => line !== "").sort();
}

/** Returns the ids of all processes below this one, zombies included. */
export async function descendantsOf(pid: number): Promise<number[]> {
  const text = await outputOf("ps", "-e", "-o", "pid=,ppid=") ?? "";
  const parents = text.trim().split("\n").map((line) => line.trim().split(/\s+/).map(Number));
  const found: number[] = [];
  const below = (parent: number) => {
    for (const [child = 0, of] of parents) {
      if (of !== parent || found.includes(child)) continue;
      found.push(child);
      below(child);
    }
  };
  below(pid);
  return found;
}

/** Returns which of these processes are alive. */
export async function aliveOf(pids: readonly number[]): Promise<number[]> {
  const text = await outputOf("ps", "-e", "-o", "pid=,stat=") ?? "";
  const alive = new Set(
    text.trim().split("\n").map((line) => line.trim().split(/\s+/)).filter(([, state]) =>
      !state?.startsWith("Z")
    )
      .map(([pid]) => Number(pid)),
  );
  return pids.filter((pid) => alive.has(pid));
}

/** Returns the lines of `ps` about processes whose arguments hold a text. */
export async function processesWith(text: string): Promise<string[]> {
  const all = await outputOf("ps", "-e", "-ww", "-o", "pid=,args=") ?? "";
  return all.split("\n").filter((line) => line.includes(text));
}

async function outputOf(command: string, ...args: string[]): Promise<string | undefined> {
  const { success, stdout } = await new Deno.Command(command, { args, stderr: "null" }).output();
  return success || stdout.length > 0 ? new TextDecoder().decode(stdout) : undefined;
}
