/** A modal dialog of the browser: it keeps the focus, and Escape closes it. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** What had the focus before a dialog: it gets it back. */
let opener: HTMLElement | undefined;

/** A modal dialog, open as long as it is shown; a wide one is for long texts. */
export function Dialog({ label, onClose, wide = false, children }: {
  label: string;
  onClose: () => void;
  wide?: boolean;
  children: ComponentChildren;
}) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    // a dialog in place of another one finds no focus
    if (document.activeElement !== document.body) opener = document.activeElement as HTMLElement;
    box.current?.showModal();
    return () =>
      queueMicrotask(() => {
        if (document.activeElement === document.body) opener?.focus();
      });
  }, []);
  return (
    <dialog
      ref={box}
      class={wide ? "wide" : undefined}
      aria-label={label}
      onClose={onClose}
    >
      <div class="body">{children}</div>
    </dialog>
  );
}
