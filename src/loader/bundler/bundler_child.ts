/**
 * Child process of the bundler: reads requests from stdin, writes answers to stdout, and has no permissions. A source that never ends or
 * exhausts memory affects only this process.
 */
import { PERMISSION_KINDS } from "../../sdk/plan.ts";
import { type Builder, bundleGraph } from "./bundle.ts";
import { type ChildAnswer, type ChildRequest, READY_ID } from "./bundler_messages.ts";
import { encodeFrame, type Frame, FrameReader } from "./frames.ts";
import { findImports } from "./imports.ts";
import type { BundlerFile } from "../types.ts";
import { includedWasm } from "./wasm_asset.ts";

/** Most bytes of one request: the largest graph and its URLs. */
const MAX_REQUEST_BYTES = 256 * 1024 * 1024;

/**
 * Serves requests until stdin closes, then exits. Must be the first code of the process.
 *
 * @param wasm esbuild's WebAssembly. Default: the one in the compiled program.
 */
export async function runBundlerChild(wasm?: WebAssembly.Module): Promise<never> {
  silenceConsole(); // stdout carries frames
  const code = wasm ?? await includedWasm();
  for (const name of PERMISSION_KINDS) Deno.permissions.revokeSync({ name });
  replaceZeroTimeouts();
  const output = new Output();
  const esbuild = startEsbuild(code);
  esbuild.then(() => output.write({ id: READY_ID }), () => Deno.exit(1));
  const requests = new FrameReader(readStdin, MAX_REQUEST_BYTES);
  for (let frame = await requests.next(); frame; frame = await requests.next()) {
    const request = frame.header as unknown as ChildRequest; // written by the parent process
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

/** Splits the body of a request into its files. */
function filesOf({ files }: ChildRequest, { body }: Frame): BundlerFile[] {
  let at = 0;
  return files.map(({ url, sha256, length }) => ({ url, sha256, bytes: body.subarray(at, at += length) }));
}

async function answerOf(
  request: ChildRequest,
  files: readonly BundlerFile[],
  esbuild: Promise<Builder>,
): Promise<ChildAnswer> {
  try {
    if (request.kind === "bundle") return await bundleGraph(await esbuild, { ...request.request, files });
    const [file] = files;
    return { kind: "imports", urls: file ? await findImports(file, request) : [] };
  } catch (error) {
    return { kind: "failed", message: error instanceof Error ? error.message : String(error) };
  }
}

/**
 * Replaces `setTimeout(…, 0)` by microtasks. perf: esbuild's browser build sends itself messages through it, hundreds for a build of
 * 100 files, and each would wait a millisecond or more.
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

/** Writes messages in order. */
class Output {
  #written: Promise<void> = Promise.resolve();

  write(header: Record<string, unknown>, body: Uint8Array = new Uint8Array(0)): Promise<void> {
    return this.#written = this.#written.then(() => writeAll(encodeFrame(header, [body])));
  }
}

async function writeAll(bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await Deno.stdout.write(bytes.subarray(at));
}
