/**
 * The bundler as a process of its own: reads requests from stdin, writes answers to stdout, and holds nothing. A source that
 * never ends or eats memory costs this process alone, and its memory goes with it.
 */
import { PERMISSION_KINDS } from "../../sdk/plan.ts";
import { type Builder, bundleGraph } from "./bundle.ts";
import { type ChildAnswer, type ChildRequest, READY_ID } from "./bundler_messages.ts";
import { encodeFrame, type Frame, FrameReader } from "./frames.ts";
import { findImports } from "./imports.ts";
import type { BundlerFile } from "../types.ts";
import { includedWasm } from "./wasm_asset.ts";

/** Bytes of one request: a graph (trust.md, Limits) with room for its names. */
const MAX_REQUEST_BYTES = 256 * 1024 * 1024;

/**
 * Serves requests until stdin closes, then ends the process. The first thing that a process of this role does.
 *
 * @param wasm esbuild's module; default: the one included in the compiled program.
 */
export async function runBundlerChild(wasm?: WebAssembly.Module): Promise<never> {
  silenceConsole(); // stdout is the wire
  const code = wasm ?? await includedWasm();
  for (const name of PERMISSION_KINDS) Deno.permissions.revokeSync({ name });
  replaceZeroTimeouts();
  const output = new Output();
  const esbuild = startEsbuild(code);
  esbuild.then(() => output.write({ id: READY_ID }), () => Deno.exit(1));
  const requests = new FrameReader(readStdin, MAX_REQUEST_BYTES);
  for (let frame = await requests.next(); frame; frame = await requests.next()) {
    const request = frame.header as unknown as ChildRequest; // written by the process that started this one
    const answer = await answerOf(request, filesOf(request, frame), esbuild);
    const { id } = request;
    if (answer.kind !== "bundle") await output.write({ id, answer });
    else await output.write({ id, answer: { ...answer, code: "" } }, new TextEncoder().encode(answer.code));
    if (answer.kind === "failed") break;
  }
  Deno.exit(0);
}

async function startEsbuild(wasm: WebAssembly.Module | BufferSource): Promise<Builder> {
  const wasmModule = wasm instanceof WebAssembly.Module ? wasm : await WebAssembly.compile(wasm);
  const esbuild = await import("esbuild-wasm/esm/browser.js");
  await esbuild.initialize({ wasmModule, worker: false });
  return esbuild;
}

/** Files of a request travel as one run of bytes. */
function filesOf({ files }: ChildRequest, { body }: Frame): BundlerFile[] {
  let at = 0;
  return files.map(({ url, sha256, length }) => ({ url, sha256, bytes: body.subarray(at, at += length) }));
}

async function answerOf(
  asked: ChildRequest,
  files: readonly BundlerFile[],
  esbuild: Promise<Builder>,
): Promise<ChildAnswer> {
  try {
    if (asked.kind === "bundle") return await bundleGraph(await esbuild, { ...asked.request, files });
    const [file] = files;
    return { kind: "imports", urls: file ? await findImports(file, asked) : [] };
  } catch (error) {
    return { kind: "failed", message: error instanceof Error ? error.message : String(error) };
  }
}

/**
 * esbuild's browser build sends each message to itself through `setTimeout(…, 0)`, which waits a millisecond or more; a
 * build of 100 files has hundreds of messages. A microtask runs as soon as the stack is empty, and that is all it needs.
 */
function replaceZeroTimeouts(): void {
  const later = globalThis.setTimeout;
  const soon = (run: () => void, delay_ms?: number): unknown => {
    if (delay_ms !== undefined && delay_ms > 0) return later(run, delay_ms);
    queueMicrotask(run);
    return 0;
  };
  Object.assign(globalThis, { setTimeout: soon });
}

function silenceConsole(): void {
  for (const key of Object.keys(console)) {
    if (typeof Reflect.get(console, key) === "function") Reflect.set(console, key, () => {});
  }
}

async function readStdin(): Promise<Uint8Array | null> {
  const buffer = new Uint8Array(64 * 1024);
  const count = await Deno.stdin.read(buffer);
  return count === null ? null : buffer.subarray(0, count);
}

/** Writes one message after the other. */
class Output {
  #written: Promise<void> = Promise.resolve();

  write(header: Record<string, unknown>, body: Uint8Array = new Uint8Array(0)): Promise<void> {
    return this.#written = this.#written.then(() => writeAll(encodeFrame(header, [body])));
  }
}

async function writeAll(bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await Deno.stdout.write(bytes.subarray(at));
}
