/** A modal dialog of the browser: it keeps the focus, and Escape closes it. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** A modal dialog, open as long as it is shown. */
export function Dialog({ label, onClose, children }: {
  label: string;
  onClose: () => void;
  children: ComponentChildren;
}) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => box.current?.showModal(), []);
  return (
    <dialog ref={box} aria-label={label} onClose={onClose}>
      <div class="body">{children}</div>
    </dialog>
  );
}
