/** Frame headers of the bundler's process. */
import type { BundleAnswer, BundleRequest, ImportsOptions } from "../types.ts";

/** A request: bundle all files, or find the imports of the first one. */
export type ChildRequest =
  & { readonly id: number; readonly files: readonly { url: string; sha256: string; length: number }[] }
  & ChildTask;

/** A request without its files. */
export type ChildTask =
  | { readonly kind: "bundle"; readonly request: Omit<BundleRequest, "files"> }
  | { readonly kind: "imports" } & ImportsOptions;

/** An answer. After `failed` the child exits, since esbuild cannot be used again. */
export type ChildAnswer =
  | BundleAnswer
  | { readonly kind: "imports"; readonly urls: readonly string[] }
  | { readonly kind: "failed"; readonly message: string };

/** Number of the message that reports that esbuild is ready. Requests are numbered from 1. */
export const READY_ID = 0;
