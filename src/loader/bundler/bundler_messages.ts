/** What the server and its bundler child say to each other: headers of frames. Types, and one number. */
import type { BundleAnswer, BundleRequest, ImportsOptions } from "../types.ts";

/** What one request asks for: a bundle of all its files, or what the first of them imports. */
export type ChildRequest =
  & { readonly id: number; readonly files: readonly { url: string; sha256: string; length: number }[] }
  & ChildTask;

/** A request without its files. */
export type ChildTask =
  | { readonly kind: "bundle"; readonly request: Omit<BundleRequest, "files"> }
  | { readonly kind: "imports" } & ImportsOptions;

/** What is answered. After `failed` the child ends: nothing in it can be trusted to work again. */
export type ChildAnswer =
  | BundleAnswer
  | { readonly kind: "imports"; readonly urls: readonly string[] }
  | { readonly kind: "failed"; readonly message: string };

/** The number of the message that says that esbuild is there; requests have numbers from 1. */
export const READY_ID = 0;
