/**
 * Requests to the public web for modules with `permissions.net`.
 *
 * @module
 */
export * from "./http/fetch_public.ts";
