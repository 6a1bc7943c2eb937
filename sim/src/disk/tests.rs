//! Every rule of the model, one test each.

use std::io::{self, ErrorKind};

use strandline::{Access, Disk};

use super::faults::{EBADF, EIO, ENOSPC};
use super::*;

const SECTOR: usize = 4;

fn disk() -> SimDisk {
    SimDisk::new(SECTOR)
}

/// A disk with one durable file, and a handle of it.
fn with_file(name: &str, bytes: &[u8]) -> (SimDisk, SimFile) {
    let disk = disk();
    let file = disk.create(name).unwrap();
    assert_eq!(disk.write_at(&file, 0, bytes).unwrap(), bytes.len());
    disk.sync(&file).unwrap();
    disk.sync_directory().unwrap();
    assert_eq!(disk.state().unsynced(), 0);
    (disk, file)
}

fn after(disk: &SimDisk, survivors: Survivors) -> DiskState {
    disk.state().power_loss(survivors)
}

fn bytes_after(disk: &SimDisk, survivors: Survivors) -> Vec<u8> {
    after(disk, survivors).file("f").expect("the file survives").to_vec()
}

fn names(state: &DiskState) -> Vec<&str> {
    state.files().map(|(name, _)| name).collect()
}

fn code<T>(result: io::Result<T>) -> Option<i32> {
    result.err().expect("an error").raw_os_error()
}

#[test]
fn what_was_synced_survives_and_nothing_else_has_to() {
    let (disk, file) = with_file("f", b"aaaabbbb");
    disk.write_at(&file, 0, b"XXXXYYYYZZ").unwrap();
    assert_eq!(disk.state().file("f"), Some(&b"XXXXYYYYZZ"[..]), "the cache shows it");
    assert_eq!(bytes_after(&disk, Survivors::None), b"aaaabbbb");
    assert_eq!(bytes_after(&disk, Survivors::All), b"XXXXYYYYZZ");
    disk.sync(&file).unwrap();
    assert_eq!(bytes_after(&disk, Survivors::None), b"XXXXYYYYZZ");
}

#[test]
fn sectors_and_lengths_survive_apart() {
    let (disk, file) = with_file("f", b"aaaa");
    disk.write_at(&file, 0, b"XXXXYYYYZZ").unwrap();
    // In order: sector 0, length 8, sector 1, length 10, sector 2.
    assert_eq!(disk.state().unsynced(), 5);
    assert_eq!(bytes_after(&disk, Survivors::Prefix(1)), b"XXXX");
    assert_eq!(bytes_after(&disk, Survivors::Prefix(2)), b"XXXX\0\0\0\0", "a length without its bytes");
    assert_eq!(bytes_after(&disk, Survivors::AllBut(0)), b"aaaaYYYYZZ");
    assert_eq!(bytes_after(&disk, Survivors::AllBut(1)), b"XXXXYYYYZZ", "a later length covers it");
    assert_eq!(bytes_after(&disk, Survivors::AllBut(2)), b"XXXX\0\0\0\0ZZ");
    assert_eq!(bytes_after(&disk, Survivors::AllBut(3)), b"XXXXYYYY", "landed but out of sight");
}

#[test]
fn a_later_version_of_a_sector_includes_the_earlier_ones() {
    let (disk, file) = with_file("f", b"aaaa");
    disk.write_at(&file, 0, b"X").unwrap();
    disk.write_at(&file, 1, b"Y").unwrap();
    assert_eq!(bytes_after(&disk, Survivors::Prefix(1)), b"Xaaa");
    assert_eq!(bytes_after(&disk, Survivors::AllBut(0)), b"XYaa");
}

#[test]
fn a_truncate_may_be_lost_with_later_writes_on_top() {
    let (disk, file) = with_file("f", b"aaaabbbb");
    disk.set_len(&file, 2).unwrap();
    assert_eq!(bytes_after(&disk, Survivors::None), b"aaaabbbb");
    assert_eq!(bytes_after(&disk, Survivors::All), b"aa");
    disk.write_at(&file, 2, b"XX").unwrap();
    // Truncate to 2, length 4, sector 0.
    assert_eq!(bytes_after(&disk, Survivors::AllBut(0)), b"aaXX", "its length came later");
    disk.write_at(&file, 4, b"YY").unwrap();
    // Also: length 6, sector 1.
    assert_eq!(bytes_after(&disk, Survivors::AllBut(4)), b"aaXX\0\0");
    assert_eq!(bytes_after(&disk, Survivors::AllBut(0)), b"aaXXYY");
}

#[test]
fn a_truncate_that_survives_never_shows_old_bytes_again() {
    let (disk, file) = with_file("f", b"aaaabbbb");
    disk.write_at(&file, 8, b"cccc").unwrap();
    disk.set_len(&file, 5).unwrap();
    disk.set_len(&file, 12).unwrap();
    assert_eq!(disk.state().file("f"), Some(&b"aaaab\0\0\0\0\0\0\0"[..]));
    assert_eq!(bytes_after(&disk, Survivors::All), b"aaaab\0\0\0\0\0\0\0");
    assert_eq!(
        bytes_after(&disk, Survivors::AllBut(0)),
        b"aaaab\0\0\0\0\0\0\0",
        "freed, though out of sight"
    );
    assert_eq!(bytes_after(&disk, Survivors::AllBut(2)), b"aaaabbbbcccc", "the truncate itself is lost");
}

#[test]
fn an_entry_is_lost_until_the_directory_is_synced() {
    let (disk, _) = with_file("old", b"o");
    let file = disk.create("f").unwrap();
    disk.write_at(&file, 0, b"new").unwrap();
    disk.sync(&file).unwrap();
    assert_eq!(names(&after(&disk, Survivors::None)), ["old"], "synced contents nobody can reach");
    assert_eq!(names(&after(&disk, Survivors::All)), ["f", "old"]);
    disk.sync_directory().unwrap();
    assert_eq!(bytes_after(&disk, Survivors::None), b"new");
}

#[test]
fn renames_and_removals_can_be_lost() {
    let (disk, _) = with_file("a", b"1");
    disk.rename("a", "b").unwrap();
    disk.create("c").unwrap();
    disk.remove("c").unwrap();
    assert_eq!(names(&disk.state()), ["b"]);
    assert_eq!(names(&after(&disk, Survivors::None)), ["a"]);
    assert_eq!(names(&after(&disk, Survivors::Prefix(1))), ["b"]);
    assert_eq!(names(&after(&disk, Survivors::Prefix(2))), ["b", "c"]);
    assert_eq!(names(&after(&disk, Survivors::AllBut(0))), ["a"], "any subset, not only a prefix");
    assert_eq!(after(&disk, Survivors::All).file("b"), Some(&b"1"[..]));
}

#[test]
fn a_rename_survives_without_the_create_before_it() {
    let disk = disk();
    let file = disk.create("temporary").unwrap();
    disk.write_at(&file, 0, b"x").unwrap();
    disk.sync(&file).unwrap();
    disk.rename("temporary", "f").unwrap();
    let state = after(&disk, Survivors::AllBut(0));
    assert_eq!((names(&state), state.file("f")), (vec!["f"], Some(&b"x"[..])));
}

#[test]
fn a_journaled_directory_loses_only_from_the_end() {
    let disk = disk();
    for name in ["a", "b", "c", "d"] {
        disk.create(name).unwrap();
    }
    let (mut prefixes, mut others) = (0, 0);
    for seed in 0..64 {
        let state = after(&disk, Survivors::Random(seed));
        let is_prefix = ["a", "b", "c", "d"].starts_with(&names(&state));
        assert!(is_prefix || !Survivors::Random(seed).orders_directory());
        if is_prefix { prefixes += 1 } else { others += 1 }
    }
    assert!(prefixes > 16 && others > 16, "both kinds of file system: {prefixes} and {others}");
}

#[test]
fn a_process_kill_keeps_the_cache_and_what_was_unsynced_stays_so() {
    let (disk, file) = with_file("f", b"aaaa");
    disk.write_at(&file, 0, b"XXXX").unwrap();
    disk.create("g").unwrap();
    let reopened = SimDisk::from_state(disk.state());
    assert_eq!(reopened.state().file("f"), Some(&b"XXXX"[..]));
    assert_eq!(names(&reopened.state()), ["f", "g"]);
    assert_eq!(bytes_after(&reopened, Survivors::None), b"aaaa");
    assert_eq!(names(&after(&reopened, Survivors::None)), ["f"]);
    assert_eq!(reopened.state().digest(), disk.state().digest());
    assert_ne!(reopened.state().digest(), after(&reopened, Survivors::All).digest(), "the platters differ");
}

#[test]
fn a_failed_sync_marks_pages_clean_and_leaves_the_platter_as_chosen() {
    let (disk, file) = with_file("f", b"aaaabbbb");
    disk.write_at(&file, 0, b"XXXXYYYY").unwrap();
    disk.plan_fault(Call::Sync, 0, false, Fault::Error(Survivors::Prefix(1)));
    assert_eq!(code(disk.sync(&file)), Some(EIO));
    disk.sync(&file).unwrap();
    assert_eq!((disk.state().unsynced(), disk.state().is_durable()), (0, false));
    assert_eq!(disk.state().file("f"), Some(&b"XXXXYYYY"[..]), "reads still show it");
    assert_eq!(bytes_after(&disk, Survivors::All), b"XXXXbbbb", "but the next sync did not write it");
    disk.write_at(&file, 4, b"Y").unwrap();
    disk.sync(&file).unwrap();
    assert_eq!(bytes_after(&disk, Survivors::None), b"XXXXYYYY", "a new write makes the page dirty again");
}

#[test]
fn lengths_of_a_failed_sync_are_covered_by_the_next_one() {
    let (disk, file) = with_file("f", b"aaaabbbb");
    disk.set_len(&file, 4).unwrap();
    disk.write_at(&file, 4, b"XX").unwrap();
    disk.plan_fault(Call::Sync, 0, false, Fault::Error(Survivors::All));
    assert_eq!(code(disk.sync(&file)), Some(EIO));
    assert_eq!(bytes_after(&disk, Survivors::None), b"aaaabbbb", "behind a held back truncate nothing lands");
    disk.sync(&file).unwrap();
    assert_eq!(bytes_after(&disk, Survivors::None), b"aaaa\0\0");
}

#[test]
fn a_failed_directory_sync_makes_a_prefix_durable() {
    let disk = disk();
    disk.create("a").unwrap();
    disk.create("b").unwrap();
    disk.plan_fault(Call::SyncDirectory, 0, false, Fault::Error(Survivors::Prefix(1)));
    assert_eq!(code(disk.sync_directory()), Some(EIO));
    assert_eq!(names(&after(&disk, Survivors::None)), ["a"]);
    assert_eq!(names(&disk.state()), ["a", "b"]);
    disk.sync_directory().unwrap();
    assert_eq!(names(&after(&disk, Survivors::None)), ["a", "b"]);
}

#[test]
fn a_full_disk_writes_short_and_then_refuses() {
    let disk = disk();
    disk.set_capacity(Some(8));
    let file = disk.create("f").unwrap();
    assert_eq!(disk.write_at(&file, 0, b"aaaabbbbcccc").unwrap(), 8);
    assert_eq!(code(disk.write_at(&file, 8, b"cccc")), Some(ENOSPC));
    assert_eq!(disk.write_at(&file, 0, b"XXXXYYYY").unwrap(), 8, "overwriting needs no space");
    assert_eq!(disk.state().file("f"), Some(&b"XXXXYYYY"[..]));
}

#[test]
fn a_hole_takes_no_space_until_it_is_written() {
    let disk = disk();
    disk.set_capacity(Some(4));
    let file = disk.create("f").unwrap();
    disk.set_len(&file, 12).unwrap();
    assert_eq!(disk.state().allocated_bytes(), 0);
    assert_eq!(disk.write_at(&file, 8, b"cccc").unwrap(), 4);
    assert_eq!(code(disk.write_at(&file, 0, b"a")), Some(ENOSPC));
    assert_eq!(disk.state().file("f"), Some(&b"\0\0\0\0\0\0\0\0cccc"[..]));
}

#[test]
fn cutting_and_removing_give_space_back() {
    let disk = disk();
    disk.set_capacity(Some(8));
    let file = disk.create("f").unwrap();
    disk.write_at(&file, 0, b"aaaabbbb").unwrap();
    disk.set_len(&file, 3).unwrap();
    assert_eq!(disk.state().allocated_bytes(), 4);
    let other = disk.create("g").unwrap();
    disk.write_at(&other, 0, b"cccc").unwrap();
    assert_eq!(code(disk.write_at(&file, 4, b"b")), Some(ENOSPC));
    disk.remove("g").unwrap();
    assert_eq!(disk.write_at(&file, 4, b"b").unwrap(), 1);
}

#[test]
fn planned_faults_strike_without_effect() {
    let (disk, file) = with_file("f", b"aaaa");
    let eio = Fault::Error(Survivors::All);
    disk.plan_fault(Call::Write, 1, false, eio);
    disk.plan_fault(Call::Read, 0, true, eio);
    assert_eq!(disk.write_at(&file, 0, b"X").unwrap(), 1);
    assert_eq!(code(disk.write_at(&file, 1, b"Y")), Some(EIO));
    assert_eq!(disk.state().file("f"), Some(&b"Xaaa"[..]));
    for _ in 0..2 {
        assert_eq!(code(disk.read_at(&file, 0, &mut [0; 4])), Some(EIO), "for ever");
    }
    disk.clear_faults();
    disk.plan_fault(Call::Write, 0, false, Fault::Interrupted);
    assert_eq!(disk.write_at(&file, 0, b"Y").unwrap_err().kind(), ErrorKind::Interrupted);
    disk.plan_fault(Call::Write, 0, false, Fault::Short(2));
    assert_eq!(disk.write_at(&file, 0, b"1234").unwrap(), 2);
    disk.plan_fault(Call::Read, 0, false, Fault::Short(3));
    let mut buffer = [0; 4];
    assert_eq!((disk.read_at(&file, 0, &mut buffer).unwrap(), &buffer), (3, b"12a\0"));
    disk.plan_fault(Call::Rename, 0, false, Fault::NoSpace);
    assert_eq!(code(disk.rename("f", "g")), Some(ENOSPC));
    assert_eq!(names(&disk.state()), ["f"]);
}

#[test]
fn a_lost_write_and_a_misdirected_one_are_seen_only_after_a_power_loss() {
    let (disk, file) = with_file("f", b"aaaabbbbcccc");
    disk.plan_fault(Call::Write, 0, false, Fault::LostWrite);
    disk.plan_fault(Call::Write, 0, false, Fault::MisdirectedWrite(1));
    disk.write_at(&file, 0, b"XXXX").unwrap();
    disk.write_at(&file, 4, b"YYYY").unwrap();
    disk.sync(&file).unwrap();
    assert_eq!(disk.state().file("f"), Some(&b"XXXXYYYYcccc"[..]));
    assert_eq!(bytes_after(&disk, Survivors::All), b"aaaabbbbYYYY");
}

#[test]
fn rot_flips_a_bit_in_the_cache_and_on_the_platter() {
    let (disk, _) = with_file("f", b"aaaa");
    assert!(disk.flip_bit("f", 1, 0));
    assert!(!disk.flip_bit("f", 4, 0), "behind the end");
    assert!(!disk.flip_bit("g", 0, 0), "no such file");
    assert_eq!(disk.state().file("f"), Some(&b"a`aa"[..]));
    assert_eq!(bytes_after(&disk, Survivors::None), b"a`aa");
}

/// A few calls of every kind, as often as the disk lets them.
fn some_calls(disk: &SimDisk) -> io::Result<()> {
    let file = disk.create("temporary")?;
    disk.write_at(&file, 0, b"abcdefg")?;
    disk.sync(&file)?;
    disk.rename("temporary", "f")?;
    disk.sync_directory()?;
    disk.write_at(&file, 3, b"XYZ")?;
    disk.set_len(&file, 4)?;
    disk.remove("f")
}

#[test]
fn after_the_crash_point_every_call_fails_and_nothing_changes() {
    let disk = disk();
    disk.crash_after(1 + 3);
    let error = some_calls(&disk).unwrap_err();
    assert_eq!(error.to_string(), Crashed.to_string());
    assert!(disk.is_crashed());
    assert_eq!(disk.state().file("temporary"), Some(&b"abc"[..]), "the first bytes of the write under way");
    let before = disk.state().digest();
    assert!(disk.list().is_err() && disk.create("g").is_err() && disk.sync_directory().is_err());
    assert_eq!((disk.state().digest(), disk.steps()), (before, 4));
}

#[test]
fn snapshots_are_what_a_crash_at_each_step_leaves() {
    let recorded = disk();
    recorded.record(Detail::EveryStep);
    some_calls(&recorded).unwrap();
    let snapshots = recorded.take_snapshots();
    assert_eq!(recorded.steps(), 1 + 7 + 3 + 3 + 2, "calls, and bytes of writes");
    let mut steps = Vec::new();
    for snapshot in snapshots {
        let crashed = disk();
        crashed.crash_after(snapshot.step);
        assert!(some_calls(&crashed).is_err(), "step {}", snapshot.step);
        assert_eq!(crashed.state().digest(), snapshot.state.digest(), "step {}", snapshot.step);
        steps.push(snapshot.step);
    }
    assert_eq!(steps, (0..recorded.steps()).collect::<Vec<_>>(), "each step once");
}

#[test]
fn landmarks_are_calls_and_the_first_middle_and_last_byte_of_a_write() {
    let disk = disk();
    disk.record(Detail::Landmarks);
    some_calls(&disk).unwrap();
    let steps: Vec<u64> = disk.take_snapshots().iter().map(|snapshot| snapshot.step).collect();
    // Of the seven bytes of the first write from step 1 on, and of the three of the second from step 11 on.
    assert_eq!(steps, [0, 1, 2, 4, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
}

#[test]
fn a_step_that_changes_nothing_is_recorded_once_unless_the_world_moved_on() {
    let (disk, file) = with_file("f", b"aaaa");
    disk.record(Detail::EveryStep);
    let read = || disk.read_at(&file, 0, &mut [0; 4]).unwrap();
    read();
    read();
    assert_eq!(disk.take_snapshots().len(), 1);
    read();
    assert_eq!(disk.take_snapshots().len(), 1, "something may have been acknowledged meanwhile");
}

#[test]
fn the_same_calls_give_the_same_states() {
    let run = || {
        let disk = disk();
        disk.record(Detail::EveryStep);
        some_calls(&disk).unwrap();
        let states = disk.take_snapshots();
        states.iter().map(|s| s.state.power_loss(Survivors::Random(s.step)).digest()).collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}

#[test]
fn a_file_opened_for_reading_cannot_be_written() {
    let (disk, _) = with_file("f", b"aaaa");
    let file = disk.open("f", Access::Read).unwrap();
    assert_eq!(code(disk.write_at(&file, 0, b"X")), Some(EBADF));
    assert_eq!(code(disk.set_len(&file, 0)), Some(EBADF));
}
