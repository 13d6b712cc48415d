/** The floor of a guest: a minimal child process with a worker that returns each text. */

/** A child process that returns each text. */
export interface Echo extends AsyncDisposable {
  /** Sends a line and resolves to the answer; one call at a time. */
  send(text: string): Promise<string>;
}

/** Starts a child process with a worker. */
export function openBareChild(): Echo {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--quiet", "--no-lock", new URL("./bare_child.ts", import.meta.url).pathname],
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  const reader = child.stdout.getReader();
  const encoder = new TextEncoder();
  return {
    async send(text) {
      await writer.write(encoder.encode(`${text}\n`));
      const decoder = new TextDecoder();
      let answer = "";
      while (!answer.endsWith("\n")) {
        const { value, done } = await reader.read();
        if (done) throw new Error("Cannot measure: the bare child process exited");
        answer += decoder.decode(value, { stream: true });
      }
      return answer.slice(0, -1);
    },
    async [Symbol.asyncDispose]() {
      await writer.close();
      await child.status;
      await reader.cancel();
    },
  };
}
