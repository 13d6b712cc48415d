/** The process's own streams, variables and signals. */
import { fileUrl } from "../file_url.ts";
import type { Input, Io, Output } from "./io.ts";

/** Returns the outside of this process. */
export function systemIo(): Io {
  return {
    out: systemOutput(Deno.stdout),
    err: systemOutput(Deno.stderr),
    in: systemInput(),
    cwd: fileUrl(`${Deno.cwd()}/`),
    env: (name) => Deno.env.get(name),
    variables: () => Object.keys(Deno.env.toObject()),
    monotonic: () => performance.now(),
    onStop,
    exit: (code) => Deno.exit(code),
  };
}

const encoder = new TextEncoder();

function systemOutput(stream: typeof Deno.stdout): Output {
  const terminal = stream.isTerminal();
  return {
    terminal,
    color: terminal && !Deno.noColor && Deno.env.get("TERM") !== "dumb",
    columns() {
      try {
        return terminal ? Deno.consoleSize().columns || 80 : 80;
      } catch {
        return 80; // neither stream is a terminal of known size
      }
    },
    write(text) {
      const bytes = encoder.encode(text);
      try {
        for (let written = 0; written < bytes.length;) written += stream.writeSync(bytes.subarray(written));
      } catch (error) {
        if (!(error instanceof Deno.errors.BrokenPipe)) throw error; // `preamp … | head`
      }
    },
  };
}

function systemInput(): Input {
  const decoder = new TextDecoder();
  let buffered = "";
  let reading: Promise<string | null> | undefined;

  /** One read at a time: what a question left unread is the next one's. */
  function read(): Promise<string | null> {
    reading ??= (async () => {
      const chunk = new Uint8Array(4096);
      const count = await Deno.stdin.read(chunk);
      reading = undefined;
      return count === null ? null : decoder.decode(chunk.subarray(0, count), { stream: true });
    })();
    return reading;
  }

  return {
    terminal: Deno.stdin.isTerminal(),
    async text() {
      const bytes = await new Response(Deno.stdin.readable).bytes();
      return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    },
    async line(signal) {
      const stopped = new Promise<null>((resolve) => {
        if (signal.aborted) resolve(null);
        signal.addEventListener("abort", () => resolve(null), { once: true });
      });
      while (!buffered.includes("\n")) {
        const text = await Promise.race([stopped, read()]);
        if (text === null) return null;
        buffered += text;
      }
      const end = buffered.indexOf("\n");
      const line = buffered.slice(0, end).replace(/\r$/, "");
      buffered = buffered.slice(end + 1);
      return line;
    },
  };
}

/** Windows has no SIGTERM; Ctrl-Break stands for it. */
const SIGNALS: readonly Deno.Signal[] = Deno.build.os === "windows"
  ? ["SIGINT", "SIGBREAK"]
  : ["SIGINT", "SIGTERM"];

function onStop(handler: () => void): () => void {
  for (const signal of SIGNALS) Deno.addSignalListener(signal, handler);
  return () => {
    for (const signal of SIGNALS) Deno.removeSignalListener(signal, handler);
  };
}
