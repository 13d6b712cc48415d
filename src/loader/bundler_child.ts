/**
 * The bundler as a process of its own: reads requests from stdin, writes bundles to stdout, and holds nothing. A bundle that
 * never ends or eats memory costs this process alone, and its memory goes with it.
 */
import { PERMISSION_KINDS } from "../sdk/permission_kinds.ts";
import { bundleGraph } from "./bundle.ts";
import { encodeFrame, FrameReader } from "./frames.ts";
import type { BundleAnswer, BundleRequest } from "./types.ts";
import { includedWasm } from "./wasm_asset.ts";

/** Bytes of one request: a graph (trust.md, Limits) with room for its names. */
const MAX_REQUEST_BYTES = 256 * 1024 * 1024;

/**
 * Serves bundles until stdin closes, then ends the process. The first thing that a process of this role does.
 *
 * @param wasm esbuild's module; default: the one included in the compiled program.
 */
export async function runBundlerChild(wasm?: WebAssembly.Module): Promise<never> {
  silenceConsole(); // stdout is the wire
  const module = wasm ?? await includedWasm();
  for (const name of PERMISSION_KINDS) Deno.permissions.revokeSync({ name });
  runSoon();
  const esbuild = await import("esbuild-wasm/esm/browser.js");
  await esbuild.initialize({ wasmModule: module, worker: false });
  const requests = new FrameReader(readStdin, MAX_REQUEST_BYTES);
  for (let frame = await requests.next(); frame; frame = await requests.next()) {
    const { id } = frame.header;
    const request = requestOf(frame.header, frame.body);
    let answer: BundleAnswer;
    try {
      answer = await bundleGraph(esbuild, request);
    } catch (error) {
      answer = {
        kind: "problems",
        problems: [{ message: error instanceof Error ? error.message : String(error) }],
      };
    }
    const code = answer.kind === "bundle" ? answer.code : "";
    await writeAll(encodeFrame({ id, answer: { ...answer, code: "" } }, [new TextEncoder().encode(code)]));
  }
  Deno.exit(0);
}

/** Files of a request travel as one run of bytes. */
function requestOf(header: Record<string, unknown>, body: Uint8Array): BundleRequest {
  const { entry, redirects, failed, files } = header as unknown as Omit<BundleRequest, "files"> & {
    files: { url: string; length: number }[];
  }; // written by the process that started this one
  let at = 0;
  const split = files.map(({ url, length }) => ({ url, bytes: body.subarray(at, at += length) }));
  return { entry, redirects, failed, files: split };
}

/**
 * esbuild's browser build sends each message to itself through `setTimeout(…, 0)`, which waits a millisecond or more; a
 * build of 100 files has hundreds of messages. A microtask runs as soon as the stack is empty, and that is all it needs.
 */
function runSoon(): void {
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

async function writeAll(bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await Deno.stdout.write(bytes.subarray(at));
}
