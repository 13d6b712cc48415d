/**
 * Child process of the bundler: reads requests from stdin, writes answers to stdout, and has no permissions.
 * A source that never ends or exhausts memory affects only this process.
 */
import { FrameWriter, parentFrames, replaceConsole, revokePermissions } from "../../process/child_io.ts";
import type { Frame } from "../../process/frames.ts";
import type { BundlerFile } from "../types.ts";
import { bundleGraph, includedWasm, startEsbuild } from "./bundle.ts";
import type { ChildAnswer, ChildMessage, ChildRequest } from "./bundler_process.ts";
import { findImports } from "./imports.ts";

/** Most bytes of one request: the largest graph and its URLs. */
const MAX_REQUEST_BYTES = 256 * 1024 * 1024;

/**
 * Serves requests until stdin closes, then exits. Must be the first code of the process.
 *
 * @param wasm esbuild's WebAssembly. Default: the one in the compiled program.
 */
export async function runBundlerChild(wasm?: WebAssembly.Module): Promise<never> {
  replaceConsole(() => {}); // stdout carries frames
  const code = wasm ?? await includedWasm();
  revokePermissions();
  replaceZeroTimeouts();
  const output = new FrameWriter();
  const write = (message: ChildMessage, body?: Uint8Array) => output.write(JSON.stringify(message), body);
  const esbuild = startEsbuild(code);
  esbuild.then(() => write({ id: 0, answer: { kind: "ready" } }), () => Deno.exit(1));
  const requests = parentFrames(MAX_REQUEST_BYTES);
  for (let frame = await requests.next(); frame; frame = await requests.next()) {
    const request = JSON.parse(frame.text) as ChildRequest; // written by the parent process
    const { id } = request;
    const answer = await answerOf(request, filesOf(request, frame), esbuild);
    if (answer.kind === "bundle") {
      await write({ id, answer: { ...answer, code: "" } }, new TextEncoder().encode(answer.code));
    } else await write({ id, answer });
    if (answer.kind === "failed") break;
  }
  Deno.exit(0);
}

/** Splits the body of a request into its files. */
function filesOf({ files }: ChildRequest, { body }: Frame): BundlerFile[] {
  let at = 0;
  return files.map(({ url, sha256, length }) => ({ url, sha256, bytes: body.subarray(at, at += length) }));
}

async function answerOf(
  request: ChildRequest,
  files: readonly BundlerFile[],
  esbuild: ReturnType<typeof startEsbuild>,
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
 * Replaces `setTimeout(…, 0)` by microtasks. perf: esbuild's browser build sends itself messages through it,
 * hundreds for a build of 100 files, and each would wait a millisecond or more.
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
