#![allow(unused)]
use super::*;
